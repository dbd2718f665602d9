"""What an update schedule is."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

Selection = Callable[[Tensor, Tensor, int], Tensor]


@dataclass(frozen=True)
class UpdateSchedule:
    """``num_passes`` passes over each rollout batch, of which pass p trains the tokens ``select(probs, mask, p)``.

    ``select(probs (B, T), mask (B, T), pass_index) → keep (B, T) bool``: pure, and a partition of the mask over
    ``pass_index`` = 0 … num_passes − 1.
    """

    num_passes: int
    select: Selection
