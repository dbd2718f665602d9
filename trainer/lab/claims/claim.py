"""A YAML file of claims: a sweep, and what papers say of its variants."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from evenkeel.errors import Problem, Refusal, suggest
from evenkeel.trainer.lab.reports.outcomes import OUTCOMES, Outcome, OutcomeName
from evenkeel.trainer.lab.sweeps.cells import cells_of
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.schema import Sweep
from evenkeel.trainer.run.config.loading import local_path
from evenkeel.trainer.run.config.section import Name, Section, Text
from evenkeel.trainer.run.config.wording import problems_of
from evenkeel.trainer.run.config.yaml_document import read_file


class Claim(Section):
    """One sentence that a sweep supports, contradicts or leaves undecided."""

    claim: Text
    """The claim, in a sentence."""
    source: Text
    """Who claims it: ``arXiv 2505.12929``."""
    variant: Text
    """The variant of the sweep that the claim is about."""
    against: Annotated[list[Text], Field(min_length=1)]
    """The variants that it is better than, each of them: the baseline, and controls that would explain it."""
    outcome: OutcomeName = "accuracy"
    """What the claim is about; its sweep names it too."""
    direction: Literal["better", "worse"] = "better"
    """The claimed direction; which one is better, the list of outcomes says."""
    matters: Annotated[float, Field(gt=0, lt=1)]
    """The smallest difference that matters, in the outcome's unit; the seeds that a decision takes are computed for it.
    """

    @property
    def compared(self) -> Outcome:
        """The outcome itself."""
        return OUTCOMES[self.outcome]

    @property
    def sign(self) -> int:
        """1 where the claim is that there is more of the outcome, −1 where it is that there is less."""
        return self.compared.sign if self.direction == "better" else -self.compared.sign


class ClaimFile(Section):
    """Claims that one sweep answers."""

    sweep: Text
    """A sweep's file, relative to this one or the current directory."""
    claims: Annotated[dict[Name, Claim], Field(min_length=1)]
    """Name, as in the docket → claim."""


def load_claims(path: Path) -> tuple[dict[str, Claim], Path]:
    """The claims of a file by name, and the file of their sweep.

    Raises:
        Refusal: everything that is wrong with the claims' own keys, each with its line.
    """
    tree = read_file(path)
    try:
        file = ClaimFile.model_validate(tree.plain())
    except ValidationError as error:
        raise Refusal(problems=problems_of(error, tree, ClaimFile)) from None
    origin = tree.value["sweep"].origin
    found = local_path(file.sweep, origin.folder, Path())
    if found is None or not found.is_file():
        what = f"there is no file {file.sweep}, neither from {origin.folder} nor from here."
        problem = Problem(("sweep",), what, "Name a sweep's file.", origin, code="no-such-file")
        raise Refusal(problems=[problem])
    return file.claims, found


def load_sweep_of(claims: Mapping[str, Claim], file: Path) -> Sweep:
    """The sweep of the claims.

    Raises:
        Refusal: it does not train a claim's variants, or name its outcome.
    """
    sweep, _ = load_sweep(file)
    names = {cell.variant for cell in cells_of(sweep)}
    for claim_name, claim in claims.items():
        for name in (claim.variant, *claim.against):
            if name not in names:
                meant = suggest(name, names, f"Its variants: {', '.join(sorted(names))}.")
                raise Refusal(
                    f"{claim_name}: the sweep {file} has no variant {name!r}. {meant}", code="unknown-variant"
                )
        if claim.outcome not in sweep.outcomes:
            named = ", ".join([*sweep.outcomes, claim.outcome])
            raise Refusal(f"{claim_name}: {file} does not name its outcome. Write outcomes: [{named}] there.")
        if claim.variant in claim.against:
            raise Refusal(f"{claim_name}: {claim.variant} would be compared with itself. Take it out of `against:`.")
    return sweep
