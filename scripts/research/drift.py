"""How far a run's policy is from its start, where there was something to learn and where there was not."""

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from evenkeel.errors import Refusal
from evenkeel.trainer.algorithms.drift import expected_divergences, uniform_groups
from evenkeel.trainer.command import positive
from evenkeel.trainer.lab.gradients.replay import (
    Recipe,
    Row,
    next_tokens,
    numbers_of,
    whole_groups,
)
from evenkeel.trainer.lab.gradients.sources import policy_of, recipe_of
from evenkeel.trainer.lab.rollouts import RecordedRollouts
from evenkeel.trainer.lab.rollouts.tokens import completions_of
from evenkeel.trainer.lab.statistics import Estimate, mean_estimate
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.record.files import CONFIG
from evenkeel.trainer.run.record.run_record import RunRecord

KINDS = ("all right", "all wrong", "mixed")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this program is asked."""
    command.add_argument("run", type=Path, help="a finished run's directory")
    command.add_argument("--batches", type=positive(int), default=4, help="rollout batches, the last ones; default 4")
    command.add_argument("--weights", type=Path, help="folder of the trained policy; else the run's newest checkpoint")


def measure(options: argparse.Namespace) -> None:
    """Print the table."""
    run: Path = options.run
    experiment = Experiment.of_file(run / CONFIG)
    batches = last_batches(run, options.batches)
    policies = (policy_of(str(options.weights or newest_policy(run))), policy_of(experiment.config.model.name_or_path))
    gained = None
    if not options.weights and (summary := RunRecord(run).summary):  # what other weights gained is not known
        before, after = (summary.get(f"accuracy_{when}") for when in ("before", "after"))
        gained = None if before is None or after is None else (before, after)
    print(drift_table(drifts(batches, *policies, recipe_of(experiment), gained)))


class DriftError(Refusal):
    """A run without what its drift is measured on."""


def learning_tax(divergence: float, accuracy_before: float, accuracy_after: float) -> float:
    """``KL / (100 (a₁ − a₀))``: nats a token that the policy moved, per point of accuracy gained.

    ``divergence`` is the mean KL to the initial policy on prompts that teach nothing (`uniform_groups`): what the gain
    cost where nothing was to be gained. The word is of arXiv 2604.13088, the ratio this project's. NaN without a gain.
    """
    gained = 100 * (accuracy_after - accuracy_before)
    return divergence / gained if gained > 0 else float("nan")


@dataclass(frozen=True)
class Drift:
    """Of one kind of prompts.

    Attributes:
        divergence: KL(π ‖ π_start), nats a token (`expected_divergences`): the mean over prompts, each the mean over
            its completions' tokens; ``None`` of fewer than two prompts.
        prompts: how many.
        tax: `learning_tax`; NaN where the accuracies are not known, or nothing was gained.
    """

    kind: str
    divergence: Estimate | None
    prompts: int
    tax: float


def drifts(
    batches: Iterator[Sequence[Row]], policy: Any, start: Any, recipe: Recipe, gained: tuple[float, float] | None
) -> list[Drift]:
    """The drift on rollouts of the run's last batches, scored by both policies.

    Args:
        gained: held-out accuracies before and after.

    Raises:
        DriftError: no recorded row has a verdict.
    """
    values: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for model in (policy, start):
        model.eval()
    for rows in batches:
        groups = whole_groups(rows, recipe.group_size)
        of_group = torch.stack([_moved(group, policy, start, recipe.temperature) for group in groups])
        correct = numbers_of(rows, "correct")
        right, wrong = uniform_groups(correct, recipe.group_size)
        judged = ~correct.view(-1, recipe.group_size).isnan().all(1)
        for kind, members in zip(KINDS, (right, wrong, judged & ~right & ~wrong), strict=True):
            values[kind] += of_group[members].tolist()
    if not any(values.values()):
        raise DriftError("No recorded completion has a verdict, so no prompt can be said to be all right or all wrong.")
    return [_drift(kind, found, gained) for kind, found in values.items()]


@torch.no_grad()
def _moved(group: Sequence[Row], policy: Any, start: Any, temperature: float) -> torch.Tensor:
    """The mean over one group's tokens, at one position after the other's own past."""
    ids, mask = completions_of(group)
    after, before = (next_tokens(model, group[0]["prompt_ids"], ids, temperature) for model in (policy, start))
    return (expected_divergences(after, before) * mask).sum() / mask.sum().clamp(min=1)


def _drift(kind: str, found: Sequence[float], gained: tuple[float, float] | None) -> Drift:
    estimate = mean_estimate(found) if len(found) > 1 else None
    if estimate is None or gained is None or kind == "mixed":  # mixed prompts are what the run was to move on
        return Drift(kind, estimate, len(found), math.nan)
    return Drift(kind, estimate, len(found), learning_tax(estimate.value, *gained))


def last_batches(run: Path, number: int) -> Iterator[Sequence[Row]]:
    """The last so many batches that a run recorded: those of the policy nearest to its end."""
    recorded = RecordedRollouts(run)
    for table in recorded.batches(numbers=list(recorded.files)[-number:]):
        yield table.to_pylist()


def drift_table(found: Sequence[Drift]) -> str:
    """The table in Markdown."""
    lines = ["| prompts | number | KL to the start, nats a token [95 %] | learning tax, nats a token and point |"]
    lines.append("|" + " --- |" * 4)
    for each in found:
        value = each.divergence
        known = "–" if value is None else f"{value.value:.2g} [{max(0.0, value.low):.2g}, {value.high:.2g}]"
        lines.append(
            f"| {each.kind} | {each.prompts} | {known} | {f'{each.tax:.2g}' if each.tax == each.tax else '–'} |"
        )
    return "\n".join(lines)


def newest_policy(run: Path) -> Path:
    """The run's newest checkpoint.

    Raises:
        DriftError: there is none.
    """
    found = [path for path in run.glob("checkpoint-*") if path.name.removeprefix("checkpoint-").isdigit()]
    if not found:
        raise DriftError(f"{run} holds no checkpoint to score with. Name the trained policy: --weights FOLDER.")
    return max(found, key=lambda path: int(path.name.removeprefix("checkpoint-")))
