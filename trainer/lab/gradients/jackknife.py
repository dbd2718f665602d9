"""Intervals of the bench's measurements by the jackknife: each rollout batch is left out once."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from evenkeel.trainer.lab.gradients.moments import GradientSums, Moments
from evenkeel.trainer.lab.gradients.sketch import add_image
from evenkeel.trainer.lab.statistics import CONFIDENCE

FEWEST = 3
"""With fewer blocks there is no interval."""
LONGEST = 32768
"""Numbers of a block's totals; longer ones are sketched, which makes margins wider: ``√(1 + d / 32768)`` times, where d
is the effective dimension of a group's noise, ``(tr Cov)² / tr Cov²``."""


def margins(blocks: Sequence[GradientSums], statistic: Callable[[Moments], Float[Tensor, "S"]]) -> Float[Tensor, "S"]:
    """Half the width of a 95 % interval around a statistic of all blocks: ``t(B − 1) · s``.

    ``s² = (B − 1)/B · Σ_b (f₍b₎ − mean f)²`` over the B statistics that each leave out one block (the delete-a-group
    jackknife; Shao and Tu, "The Jackknife and Bootstrap", 1995, §2.3). NaN below `FEWEST` blocks, and where one of the
    B is NaN. Totals may be sketches (see `LONGEST`).
    """
    count = len(blocks)
    if count < FEWEST:
        return torch.full((len(blocks[0].within),), torch.nan) if blocks else torch.zeros(0)
    totals, within = sum(each.totals for each in blocks), sum(each.within for each in blocks)
    groups = sum(each.groups for each in blocks)
    found = []
    for block in blocks:
        rest = totals - block.totals
        found.append(statistic(Moments(groups - block.groups, (rest @ rest.T).double(), within - block.within)))
    replicates = torch.stack(found)
    variance = (replicates - replicates.mean(0)).square().sum(0) * (count - 1) / count
    return variance.sqrt() * float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1))


def block_of(sums: GradientSums) -> GradientSums:
    """A copy of one batch's sums; totals that are longer than `LONGEST` are sketched."""
    estimators, dimensions = sums.totals.shape
    block = GradientSums(estimators, min(dimensions, LONGEST))
    if dimensions > LONGEST:
        add_image(block.totals, sums.totals, seed=0)
    else:
        block.totals += sums.totals
    block.within += sums.within
    block.groups = sums.groups
    return block


def stated(margin: float) -> str:
    """`` ± margin`` for a table; nothing where there is none."""
    return f" ± {margin:.1g}" if math.isfinite(margin) else ""
