"""Our code with one device error each: a tensor made on the CPU, or left there. The tier has to see every one."""

import inspect
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from types import CodeType

from tests.standin.cases import CASES, RESUMED


@dataclass(frozen=True)
class Mutant:
    """In ``function``, ``module:name``, the text ``right`` becomes ``wrong``; ``case`` then fails."""

    function: str
    right: str
    wrong: str
    case: str

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, every caller of the function runs the wrong text."""
        function = inspect.unwrap(pkgutil.resolve_name(self.function))
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
        "evenkeel.trainer.step.metrics:_add_contributions", "(longest, device=gradient.device)", "(longest)", "default"
    ),
    "sums of the shared prefix": Mutant(
        "evenkeel.trainer.step.metrics:SharedPrefixMeter.expect",
        "longest_prefix, device=device",
        "longest_prefix",
        "default",
    ),
    "group numbers": Mutant(
        "evenkeel.trainer.algorithms.row_draws:row_data",
        "(len(rewards), device=rewards.device)",
        "(len(rewards))",
        "default",
    ),
    "keys of rows": Mutant(
        "evenkeel.trainer.algorithms.row_draws:row_data",
        "rollout_number).to(rewards.device)",
        "rollout_number)",
        "lopti, random",
    ),
    "groups of the shared prefix": Mutant(
        "evenkeel.trainer.step.metrics:_add_contributions", ", device=groups.device)", ")", "default"
    ),
    "weights of rewards, refusal": Mutant(
        "evenkeel.trainer.step.advantages:Rewards.refuse_unusable",
        "self.weights.to(rewards_per_function.device)",
        "self.weights",
        "default",
    ),
    "weights of rewards, sum": Mutant(
        "evenkeel.trainer.algorithms.signals:weighted_sum",
        "reward_weights.to(rewards_per_function.device)",
        "reward_weights",
        "default",
    ),
    "rows that still generate": Mutant(
        "evenkeel.trainer.step.generation:sample_running", ", device=input_ids.device)", ")", "compact generation"
    ),
    "keys of common random numbers": Mutant(
        "evenkeel.trainer.step.generation:CommonRandomNumbers.draw",
        ", device=self.ranks.device)",
        ")",
        "common random numbers",
    ),
    "words of keyed noise": Mutant(
        "evenkeel.trainer.algorithms.keyed_noise:keyed_bits", ", device=keys.device)", ")", "common random numbers"
    ),
    "last counted token": Mutant(
        "evenkeel.trainer.step.microbatches:last_counted", ", device=mask.device)", ")", "planned"
    ),
    "rows of padding": Mutant(
        "evenkeel.trainer.step.microbatches:Planner._microbatch",
        "padding.to(chosen.device, non_blocking=True)",
        "padding",
        "planned, dead groups",
    ),
    "gradients that are compared": Mutant(
        "evenkeel.trainer.step.microbatches:_gradient", ", device=parameters[0].device)", ")", "planned"
    ),
    "verdicts": Mutant(
        "evenkeel.trainer.step.advantages:Advantages._gathered_verdicts", ".to(self.ranks.device)", "", "ibpo"
    ),
    "scores of repairs": Mutant(
        "evenkeel.trainer.step.other_prompts:Revisions._columns",
        "repair_scores(repaired).to(device)",
        "repair_scores(repaired)",
        "ibpo",
    ),
    "edited tokens": Mutant(
        "evenkeel.trainer.step.other_prompts:Revisions._columns", "edited.to(device)", "edited", "ibpo"
    ),
    "tokens of the prefix tree": Mutant(
        "evenkeel.trainer.algorithms.advantages.exchangeable:_prefix_tree_baseline",
        "(completion_ids.shape[1], device=completion_ids.device)",
        "(completion_ids.shape[1])",
        "prefix tree",
    ),
    "flag of any rank": Mutant("evenkeel.trainer.step.setup:Ranks.any", "[flag], device=self.device", "[flag]", "ibpo"),
    "counts of revisions": Mutant(
        "evenkeel.trainer.step.other_prompts:Revisions._log", ", device=self.ranks.device)", ")", "ibpo"
    ),
    "sums after a resume": Mutant(
        "evenkeel.trainer.step.metrics:Means.load_state_dict",
        'values.to(device) for name, values in state["sums"]',
        'values for name, values in state["sums"]',
        "resumed between log lines",
    ),
}
MUTANTS_OF_TWO: dict[str, Mutant] = {
    "flag of any rank": MUTANTS["flag of any rank"],
    "counts of revisions": MUTANTS["counts of revisions"],
    "scores of repairs": MUTANTS["scores of repairs"],
    "tokens of another width on one rank": Mutant(
        "evenkeel.trainer.step.setup:Ranks.gathered_tokens",
        "self.accelerator.pad_across_processes(tokens, dim=1, pad_index=padding)",
        "tokens[:, self.index :]",
        "default",
    ),
}
"""Refused on both ranks; the last one between two processes alone."""
