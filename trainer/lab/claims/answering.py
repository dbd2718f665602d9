"""From the finished runs of a claim's sweep to its answer, and what the answer cost."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.claims.claim import Claim
from evenkeel.trainer.lab.reports.comparison import datasets_of, scored_runs
from evenkeel.trainer.lab.reports.contrasts import contrast_of
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns, total
from evenkeel.trainer.lab.statistics.claim import ClaimAnswer, claim_answer
from evenkeel.trainer.lab.statistics.intervals import StatisticsError
from evenkeel.trainer.lab.sweeps.cells import cells_of
from evenkeel.trainer.lab.sweeps.schema import Sweep


@dataclass(frozen=True)
class Cost:
    """Cost of all runs that an answer rests on, including those of tuning.

    Attributes:
        core_hours: wall time × processes, each with one core or device; ``None`` where a time is not known.
        tokens: of prompts and completions; ``None`` where a run did not log them.
    """

    cells: int
    core_hours: float | None
    tokens: float | None


@dataclass(frozen=True)
class Answered:
    """The answer to ``claim``, from the ``runs`` that it rests on, on the held-out set ``held_out``."""

    claim: Claim
    answer: ClaimAnswer
    held_out: str
    cost: Cost
    runs: list[RecordedRun]


def answered(name: str, claim: Claim, sweep: Sweep, runs: RecordedRuns, tuning: Iterable[RecordedRun] = ()) -> Answered:
    """The answer to a claim by those of a sweep's ``runs`` that are of the claim's variants, with all of its seeds.

    Runs of its ``tuning`` add to the cost.

    Raises:
        Refusal: some of them are not finished, or were not scored on the held-out set. It gives the claim's ``name``.
    """
    names, root = (claim.variant, *claim.against), Path(sweep.output_dir)
    held_out = next(iter(datasets_of(runs)), "")
    if not held_out:
        raise Refusal(f"{name}: no held-out set was scored in all runs of {root}. Write a data.test.")
    planned = {
        name: {seed: by_seed[seed] for seed in sweep.seeds if seed in by_seed}
        for name, by_seed in runs.by_variant.items()
    }
    scored = scored_runs(replace(runs, by_variant=planned), held_out)
    absent = [
        cell.name
        for cell in cells_of(sweep)
        if cell.variant in names and cell.seed not in scored.by_variant.get(cell.variant, {})
    ]
    if absent:
        raise Refusal(f"{name}: {', '.join(absent)} of {root} are not finished or not scored. Run the claim again.")
    ours = scored.by_variant[claim.variant]
    differences = {}
    try:
        for other in claim.against:
            pair = claim.variant, other, ours, scored.by_variant[other]
            found = contrast_of(*pair, held_out, claim.compared).difference
            differences[other] = found if claim.sign > 0 else -found
        answer = claim_answer(differences, claim.matters)
    except StatisticsError as error:
        answer = ClaimAnswer("not decided", {}, False, None, str(error))
    used = [run for name in names for run in scored.by_variant[name].values()]
    # the variant of a tuning cell: ``ar,learning_rate=1e-4``
    used += [run for run in tuning if run.variant.partition(",")[0] in names]
    seconds = total(run.device_seconds for run in used)
    cost = Cost(len(used), None if seconds is None else seconds / 3600, total(run.tokens for run in used))
    return Answered(claim, answer, held_out, cost, used)
