"""Gradients of strategies compared on the same rollouts and weights, one row of numbers for each strategy."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.gradients.contributions import Recipe, passes, true_gradient
from evenkeel.trainer.lab.gradients.jackknife import margins
from evenkeel.trainer.lab.gradients.moments import GradientSums, Moments, together
from evenkeel.trainer.lab.gradients.replay import Row, group_gradients, replayed
from evenkeel.trainer.lab.gradients.sketch import CountSketch
from evenkeel.trainer.lab.gradients.strategies import Named, replayable


@dataclass(frozen=True)
class Measured:
    """One strategy on all batches.

    Attributes:
        cosine: with the baseline's gradient on the same prompts.
        norm: of the gradient, in units of the baseline's.
        signal_to_noise: of one prompt's gradient; see `Moments`.
        alignment: estimated cosine of the expected gradient with that of p(correct); 1 = no bias in direction.
        signal_to_noise_margin, alignment_margin: half of their 95 % intervals; NaN with few batches (see `margins`).
        passes: optimizer steps for each batch.
    """

    name: str
    cosine: float
    norm: float
    signal_to_noise: float
    alignment: float
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


def bench(batches: Iterable[Sequence[Row]], model: Any, recipe: Recipe, strategies: Sequence[Named]) -> Bench:
    """Replay recorded batches through the strategies, with `BASELINE` as the first row.

    Args:
        batches: rows of each recorded batch, by their place in it.
        model: the policy; set to evaluation mode.

    Raises:
        Refusal: nothing to replay, not `BASELINE`, or fewer than two groups.
    """
    model.eval()
    sketch = CountSketch([p.numel() for p in model.parameters() if p.requires_grad])
    blocks: list[GradientSums] = []
    for rows in batches:
        batch = replayed(rows, recipe, model)
        replay = partial(passes, batch=batch, recipe=recipe)
        if not blocks:
            asked, absent = replayable(strategies, replay)
        made = [torch.stack(replay(named.parts)).sum(0) for named in asked]
        stacked = torch.stack([*made, true_gradient(batch)])
        blocks.append(GradientSums(len(stacked), sketch.length))
        for coefficients, jacobian in group_gradients(batch, stacked, model, recipe, sketch):
            blocks[-1].add(coefficients, jacobian)
    groups = sum(block.groups for block in blocks)
    if groups < 2:
        raise Refusal("There are fewer than two groups to replay.")
    moments = together(blocks).moments()
    return Bench(
        rows=_measured(asked, moments, blocks),
        cosines=moments.cosines[:-1, :-1].tolist(),
        batches=len(blocks),
        groups=groups,
        sketch_error=sketch.error,
        absent=absent,
    )


def _measured(strategies: Sequence[Named], moments: Moments, blocks: Sequence[GradientSums]) -> list[Measured]:
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
            passes=named.parts.schedule.num_passes,
            signal_to_noise_margin=float(ratio_margins[place]),
            alignment_margin=float(alignment_margins[place]),
        )
        for place, named in enumerate(strategies)
    ]
