"""Gradients of strategies compared on the same rollouts and weights, one row of numbers for each strategy."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from pydantic_core import from_json, to_json
from torch import Tensor

from evenkeel.errors import Refusal
from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.diagnostics import gradient_shares
from evenkeel.trainer.lab.gradients.contributions import ReplayedBatch, passes, true_gradient
from evenkeel.trainer.lab.gradients.jackknife import margins
from evenkeel.trainer.lab.gradients.moments import GradientSums, Moments, together
from evenkeel.trainer.lab.gradients.replay import Recipe, Row, group_gradients, replayed
from evenkeel.trainer.lab.gradients.sketch import CountSketch
from evenkeel.trainer.lab.gradients.strategies import BASELINE, Named, named_strategy

COEFFICIENT_LOSS = "cispo"
"""The loss in which a coefficient replaces the clipped ratio."""


@dataclass(frozen=True)
class Measured:
    """One strategy on all batches.

    Attributes:
        cosine: with the baseline's gradient on the same prompts.
        norm: of the gradient, in units of the baseline's.
        signal_to_noise: of one prompt's gradient; see `Moments`.
        alignment: estimated cosine of the expected gradient with that of p(correct); 1 = no bias in direction.
        signal_to_noise_margin, alignment_margin: half of their 95 % intervals; NaN with few batches (see `margins`).
        quartiles: shares of the update by π_old, four equal ranges from 0 to 1.
        passes: optimizer steps for each batch.
    """

    name: str
    cosine: float
    norm: float
    signal_to_noise: float
    alignment: float
    quartiles: list[float]
    passes: int
    signal_to_noise_margin: float = math.nan
    alignment_margin: float = math.nan


@dataclass(frozen=True)
class Bench:
    """The results of a bench.

    Attributes:
        cosines: (rows, rows) between the gradients of all rows.
        absent: strategies that could not be replayed, and why.
        sketch_error: upper bound on a cosine's standard error by the random projection; 0 = no projection.
    """

    rows: list[Measured]
    cosines: list[list[float]]
    batches: int
    groups: int
    sketch_error: float
    absent: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain data; NaN and infinities, which JSON does not have, are ``None``."""
        found: dict[str, Any] = from_json(to_json(asdict(self), inf_nan_mode="null"))
        return found


def bench(
    batches: Iterable[Sequence[Row]],
    model: Any,
    recipe: Recipe,
    strategies: Sequence[Named],
    loss_type: str,
    longest: int,
) -> Bench:
    """Replay recorded batches through the strategies, with `BASELINE` as the first row.

    Args:
        batches: rows of each recorded batch, by their place in it.
        model: the policy; set to evaluation mode.
        longest: ``max_completion_length``, which dr_grpo divides by.

    Raises:
        Refusal: nothing to replay, or fewer than two groups.
    """
    model.eval()
    asked = [named_strategy(BASELINE), *(named for named in strategies if named.name != BASELINE)]
    sketch = CountSketch([p.numel() for p in model.parameters() if p.requires_grad])
    quartiles: dict[str, Tensor] = {}
    absent: dict[str, str] = {}
    blocks: list[GradientSums] = []
    for rows in batches:
        batch = replayed(rows, recipe, model)
        made = _contributions(asked, batch, loss_type, longest, quartiles, absent)
        stacked = torch.stack([*made, true_gradient(batch)])
        blocks.append(GradientSums(len(stacked), sketch.length))
        for coefficients, jacobian in group_gradients(batch, stacked, model, recipe, sketch):
            blocks[-1].add(coefficients, jacobian)
    groups = sum(block.groups for block in blocks)
    if groups < 2:
        raise Refusal("There are fewer than two groups to replay.")
    moments = together(blocks).moments()
    return Bench(
        rows=_measured([named for named in asked if named.name not in absent], moments, blocks, quartiles),
        cosines=moments.cosines[:-1, :-1].tolist(),
        batches=len(blocks),
        groups=groups,
        sketch_error=sketch.error,
        absent=absent,
    )


def _contributions(
    asked: Sequence[Named],
    batch: ReplayedBatch,
    loss_type: str,
    longest: int,
    quartiles: dict[str, Tensor],
    absent: dict[str, str],
) -> list[Tensor]:
    """Contributions (N, T) of every strategy; adds those that cannot be replayed to ``absent``, in the first batch."""
    made: list[Tensor] = []
    for named in asked:
        if named.name in absent:
            continue
        loss = loss_type if named.parts.coefficient is None else COEFFICIENT_LOSS
        try:
            joint = torch.stack(passes(named.parts, batch, loss, longest)).sum(0)
        except PartError as error:
            if named.name in quartiles:
                raise
            absent[named.name] = str(error)
            continue
        shares = gradient_shares(batch.logps.exp(), joint, batch.mask)
        quartiles[named.name] = quartiles.get(named.name, 0) + shares
        made.append(joint)
    return made


def _measured(
    strategies: Sequence[Named], moments: Moments, blocks: Sequence[GradientSums], quartiles: dict[str, Tensor]
) -> list[Measured]:
    """The rows of all strategies, in the order of the estimators in ``moments``, whose last is p(correct)."""
    truth = len(moments.totals) - 1
    alignment = moments.alignment(truth)
    ratio_margins = margins(blocks, lambda each: each.signal_to_noise)
    alignment_margins = margins(blocks, lambda each: each.alignment(truth))
    return [
        Measured(
            name=named.name,
            cosine=float(moments.cosines[0, place]),
            norm=float(moments.norms[place] / moments.norms[0]),
            signal_to_noise=float(moments.signal_to_noise[place]),
            alignment=float(alignment[place]),
            quartiles=(quartiles[named.name] / quartiles[named.name].sum()).tolist(),
            passes=named.parts.schedule.num_passes,
            signal_to_noise_margin=float(ratio_margins[place]),
            alignment_margin=float(alignment_margins[place]),
        )
        for place, named in enumerate(strategies)
    ]
