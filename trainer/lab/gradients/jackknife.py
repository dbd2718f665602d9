"""Intervals of the bench's measurements by the jackknife: each rollout batch (block) is left out once."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from evenkeel.trainer.evaluation.shares import CONFIDENCE
from evenkeel.trainer.lab.gradients.moments import GradientSums, Moments, together

FEWEST = 3
"""With fewer blocks there is no interval."""


def margins(blocks: Sequence[GradientSums], statistic: Callable[[Moments], Float[Tensor, "S"]]) -> Float[Tensor, "S"]:
    """`jackknife_margins` of a statistic of all blocks."""
    if len(blocks) < FEWEST:
        return torch.full((len(blocks[0].within),), torch.nan)
    rests = [together([other for other in blocks if other is not block]) for block in blocks]
    return jackknife_margins(torch.stack([statistic(rest.moments()) for rest in rests]))


def jackknife_margins(replicates: Float[Tensor, "B S"]) -> Float[Tensor, "S"]:
    """Half the width of a 95 % interval around a statistic of all blocks: ``t(B − 1) · s``.

    ``s² = (B − 1)/B · Σ_b (f₍b₎ − mean f)²`` over the B statistics that each leave out one block (the delete-a-group
    jackknife; Shao and Tu, "The Jackknife and Bootstrap", 1995, §2.3). NaN below `FEWEST` blocks, and where one of the
    B is NaN.
    """
    count = len(replicates)
    if count < FEWEST:
        return torch.full_like(replicates[0], torch.nan)
    variance = (replicates - replicates.mean(0)).square().sum(0) * (count - 1) / count
    return variance.sqrt() * float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1))


def stated(margin: float) -> str:
    """`` ± margin`` for a table; empty where it is not finite."""
    return f" ± {margin:.1g}" if math.isfinite(margin) else ""
