"""Figures 1 and 3 of arXiv 2505.12929 for any policy: what one plain SGD step by each strategy does to its tokens."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from evenkeel.errors import Refusal
from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.strategies import Strategies
from evenkeel.trainer.lab.gradients.contributions import Recipe, ReplayedBatch, batch_advantages, passes
from evenkeel.trainer.lab.gradients.jackknife import jackknife_margins
from evenkeel.trainer.lab.gradients.moments import GradientSums
from evenkeel.trainer.lab.gradients.outcomes import (
    frozen_move,
    gradient_norm_share,
    mean_of,
    ratio,
    rose_share,
    token_sets,
)
from evenkeel.trainer.lab.gradients.replay import Row, group_gradients, replayed
from evenkeel.trainer.lab.gradients.sketch import CountSketch
from evenkeel.trainer.lab.gradients.strategies import BASELINE, Named, replayable


@dataclass(frozen=True)
class FigureRow:
    """An outcome of a strategy by `SETS`: over all batches, and its difference to the baseline's; margins are half of
    the 95 % intervals, NaN with few batches (see `jackknife_margins`)."""

    strategy: str
    figure: str
    outcome: str
    values: list[float]
    margins: list[float]
    differences: list[float]
    difference_margins: list[float]


@dataclass(frozen=True)
class Figures:
    """All outcomes, those of one figure together; ``absent``: strategy → why it could not be replayed."""

    rows: list[FigureRow]
    batches: int
    groups: int
    learning_rate: float
    absent: dict[str, str]


def figures(batches: Iterable[Sequence[Row]], policy: Any, recipe: Recipe, strategies: Sequence[Named]) -> Figures:
    """One step a pass by each strategy, from the policy's weights, on each of the recorded batches.

    The intervals are over prompts; those of a batch are left out together, because they share the step.

    Raises:
        Refusal: nothing to replay, or not `BASELINE`.
    """
    steps = Steps(policy.eval(), recipe)
    measured: dict[tuple[str, str], list[Tensor]] = defaultdict(list)
    groups = 0
    for rows in batches:
        batch = steps.replayed(rows, steps.start)
        trained = partial(_passes, batch=batch, recipe=recipe)
        if not groups:
            asked, absent = replayable(strategies, trained)
        groups += len(batch.prompt_ids)
        known: dict[bytes, SingleSteps] = {}  # several strategies have the same contributions
        for named in asked:
            contributions = trained(named.parts)
            joint = sum(contributions, torch.zeros(()))
            key = joint.numpy().tobytes()
            known[key] = known.get(key) or steps.single_steps(rows, batch, joint)
            advantages = batch_advantages(named.parts, batch, recipe)
            found = steps.outcomes(rows, batch, contributions, advantages, known[key])
            for outcome, sums in found.items():
                measured[outcome, named.name].append(sums)
    if not groups:
        raise Refusal("There is no rollout batch to replay.")
    stacked = {key: torch.stack(sums) for key, sums in measured.items()}
    made = []
    for outcome, name in sorted(stacked, key=lambda key: key[0]):
        sums = stacked[outcome, name]
        figure, its_name = outcome.split()
        numbers = _estimated(sums, stacked[outcome, BASELINE])
        made.append(FigureRow(name, figure, its_name, *numbers))
    return Figures(made, len(sums), groups, recipe.learning_rate, absent)


def _passes(parts: Strategies, batch: ReplayedBatch, recipe: Recipe) -> list[Tensor]:
    """The contributions of each pass.

    Raises:
        PartError: they cannot be replayed, or those of a second pass, whose ratios are not 1.
    """
    if parts.schedule.num_passes > 1 and (parts.coefficient or recipe.clip is None):
        raise PartError(
            "A second pass is replayed where each token's ratio is clipped by itself: trl.loss_type grpo, bnpo, dapo "
            "or dr_grpo without a coefficient, trl.delta or trl.importance_sampling_level: sequence."
        )
    return passes(parts, batch, recipe)


def _estimated(sums: Tensor, baseline: Tensor) -> list[list[float]]:
    """The numbers of a `FigureRow`, from the sums (B, 2, K) of each batch."""
    values = ratio(sums.sum(0))
    rests = ratio(sums.sum(0) - sums)
    gains = values - ratio(baseline.sum(0))
    rests_of_gains = rests - ratio(baseline.sum(0) - baseline)
    found = values, jackknife_margins(rests), gains, jackknife_margins(rests_of_gains)
    return [each.tolist() for each in found]


SingleSteps = tuple[Tensor, Sequence[Tensor]]
"""The norms (K,) of gradients by each set of tokens; probabilities (N, T) after a step by all, rare and sure tokens."""


class Steps:
    """Plain SGD steps on copies of a policy: gradients in single precision, weights and probabilities in double."""

    def __init__(self, policy: Any, recipe: Recipe) -> None:
        self.recipe = recipe
        self.single = deepcopy(policy).float()
        self.double = deepcopy(policy).double()
        self.start = parameters_to_vector(self.double.parameters()).detach().clone()

    def replayed(self, rows: Sequence[Row], weights: Tensor) -> ReplayedBatch:
        """The rows of one recorded batch, scored at weights (P,)."""
        vector_to_parameters(weights, self.double.parameters())
        return replayed(rows, self.recipe, self.double)

    def outcomes(
        self,
        rows: Sequence[Row],
        batch: ReplayedBatch,
        trained: Sequence[Tensor],
        advantages: Tensor,
        single: SingleSteps,
    ) -> dict[str, Tensor]:
        """Figure and outcome → its sums (2, K) on one batch, from the contributions of each pass.

        A single quarter is trained in one step. 1b shows how advantages are distributed: their mean size stands for it.
        """
        old, mask = batch.logps.exp(), batch.mask
        sets = token_sets(old, mask)
        norms, (whole, by_rare, by_sure) = single
        new = whole if len(trained) == 1 else self._after(rows, batch, trained)
        sizes = mean_of(advantages.abs(), old, mask)
        return {
            "1a token_share": torch.stack([sizes[1], sizes[1, :1].expand(len(sets))]),
            "1b advantage_size": sizes,
            "1c move": mean_of((new - old).abs(), old, mask),
            "1d gradient_norm": torch.stack([norms, torch.ones_like(norms)]),
            "1d gradient_norm_share": gradient_norm_share(norms),
            "1e move_by_rare": mean_of((by_rare - old).abs(), old, mask),
            "1e frozen_move_by_rare": frozen_move(old, by_rare, new, mask * ~sets[1]),
            "1f move_by_sure": mean_of((by_sure - old).abs(), old, mask),
            "1f frozen_move_by_sure": frozen_move(old, by_sure, new, mask * ~sets[-1]),
            "3 rose_share": rose_share(old, new, advantages, mask),
        }

    def single_steps(self, rows: Sequence[Row], batch: ReplayedBatch, contributions: Tensor) -> SingleSteps:
        """The `SingleSteps` of contributions (N, T)."""
        gradients = self._gradients(self.start, batch, contributions * token_sets(batch.logps.exp(), batch.mask))
        stepped = (self.start + self.recipe.learning_rate * gradients[place] for place in (0, 1, -1))
        return gradients.norm(dim=1).double(), [self.replayed(rows, weights).logps.exp() for weights in stepped]

    def _after(self, rows: Sequence[Row], batch: ReplayedBatch, trained: Sequence[Tensor]) -> Tensor:
        """Probabilities (N, T) after all passes; tokens clipped after one are not trained in the next."""
        low, high = self.recipe.clip or (0, math.inf)
        old = batch.logps.exp()
        weights = self.start
        new = old
        for contributions in trained:
            ratios = new / old
            within = torch.where(contributions > 0, ratios <= high, ratios >= low)
            factors = contributions * ratios * within
            gradients = self._gradients(weights, batch, factors[None])
            weights = weights + self.recipe.learning_rate * gradients[0]
            new = self.replayed(rows, weights).logps.exp()
        return new

    def _gradients(self, weights: Tensor, batch: ReplayedBatch, contributions: Tensor) -> Tensor:
        """(S, P) of contributions (S, N, T), at weights (P,)."""
        vector_to_parameters(weights.float(), self.single.parameters())
        sums = GradientSums(len(contributions), len(weights))
        exact = CountSketch([len(weights)], most=len(weights))
        for found in group_gradients(batch, contributions, self.single, self.recipe, exact):
            sums.add(*found)
        return sums.totals
