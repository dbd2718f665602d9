"""Our code with one device error each: a tensor made on the CPU, or left there. The tier has to see every one."""

import inspect
import pkgutil
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from types import CodeType

from tests.standin.cases import CASES, RESUMED


@dataclass(frozen=True)
class Mutant:
    """In ``function``, ``module:name``, the text ``right`` becomes ``wrong``; ``case`` then fails.

    ``wrong`` is ``right`` without its device unless told otherwise.
    """

    function: str
    right: str
    case: str
    told: str | None = None

    @property
    def wrong(self) -> str:
        return re.sub(r", device=[\w.\[\]]+|\.to\([^()]*\)", "", self.right) if self.told is None else self.told

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, every caller of the function runs the wrong text."""
        function = inspect.unwrap(pkgutil.resolve_name(f"evenkeel.trainer.{self.function}"))
        text = dedent(inspect.getsource(function))
        assert text.count(self.right) == 1, f"{self.function} holds {self.right!r} {text.count(self.right)} times"
        wrong = compile(text.replace(self.right, self.wrong), function.__code__.co_filename, "exec")
        right, function.__code__ = function.__code__, _code_of(wrong, function.__name__)
        try:
            yield
        finally:
            function.__code__ = right

    def error(self, folder: Path) -> str | None:
        """What the case raises with it, in one optimizer step; ``None`` = nothing is seen."""
        try:
            with self.applied():
                (CASES | RESUMED)[self.case].run(folder, max_steps=1)
        except RuntimeError as error:
            return str(error).splitlines()[0]
        return None


def _code_of(module: CodeType, name: str) -> CodeType:
    (found,) = (each for each in module.co_consts if isinstance(each, CodeType) and each.co_name == name)
    return found


MUTANTS: dict[str, Mutant] = {
    "positions of the shared prefix": Mutant(
        "step.metrics:_add_contributions", "(longest, device=gradient.device)", "default"
    ),
    "sums of the shared prefix": Mutant(
        "step.metrics:SharedPrefixMeter.expect", "longest_prefix, device=device", "default"
    ),
    "group numbers": Mutant("algorithms.row_draws:row_data", "(len(rewards), device=rewards.device)", "default"),
    "keys of rows": Mutant("algorithms.row_draws:row_data", "rollout_number).to(rewards.device)", "lopti, random"),
    "groups of the shared prefix": Mutant("step.metrics:_add_contributions", ", device=groups.device)", "default"),
    "weights of rewards, refusal": Mutant(
        "step.advantages:Rewards.refuse_unusable", "self.weights.to(rewards_per_function.device)", "default"
    ),
    "weights of rewards, sum": Mutant(
        "algorithms.signals:weighted_sum", "reward_weights.to(rewards_per_function.device)", "default"
    ),
    "rows that still generate": Mutant(
        "step.generation:sample_running", ", device=input_ids.device)", "compact generation"
    ),
    "keys of common random numbers": Mutant(
        "step.generation:CommonRandomNumbers.draw", ", device=self.ranks.device)", "common random numbers"
    ),
    "words of keyed noise": Mutant(
        "algorithms.keyed_noise:keyed_bits", ", device=keys.device)", "common random numbers"
    ),
    "last counted token": Mutant("step.microbatches:last_counted", ", device=mask.device)", "planned"),
    "rows of padding": Mutant(
        "step.microbatches:Planner._microbatch", "padding.to(chosen.device, non_blocking=True)", "planned, dead groups"
    ),
    "gradients that are compared": Mutant("step.microbatches:_gradient", ", device=parameters[0].device)", "planned"),
    "verdicts": Mutant("step.advantages:Advantages._gathered_verdicts", ".to(self.ranks.device)", "ibpo"),
    "scores of repairs": Mutant("step.other_prompts:Revisions._columns", "scores.to(device)", "ibpo"),
    "edited tokens": Mutant("step.other_prompts:Revisions._columns", "edited.to(device)", "ibpo"),
    "tokens of the prefix tree": Mutant(
        "algorithms.advantages.exchangeable:_prefix_tree_baseline",
        "(completion_ids.shape[1], device=completion_ids.device)",
        "prefix tree",
    ),
    "flag of any rank": Mutant("step.setup:Ranks.any", "[flag], device=self.device", "ibpo"),
    "counts of revisions": Mutant("step.other_prompts:Revisions._log", ", device=self.ranks.device)", "ibpo"),
    "sums after a resume": Mutant(
        "step.metrics:Means.load_state_dict",
        'values.to(device) for name, values in state["sums"]',
        "resumed between log lines",
    ),
}
MUTANTS_OF_TWO: dict[str, Mutant] = {
    **{name: MUTANTS[name] for name in ("flag of any rank", "counts of revisions", "scores of repairs")},
    "tokens of another width on one rank": Mutant(
        "step.setup:Ranks.gathered_tokens",
        "self.accelerator.pad_across_processes(tokens, dim=1, pad_index=padding)",
        "default",
        "tokens[:, self.index :]",
    ),
}
"""Refused on both ranks; the last one between two processes alone."""
