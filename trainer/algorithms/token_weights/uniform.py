"""No token weights."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def uniform(
    probs: Float[Tensor, "B T"], advantages: Float[Tensor, "B T"], mask: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Every token weighs 1: the baseline.

    Source: TRL's GRPOTrainer.
    Evidence: the trainer with it is stock TRL, weights equal bit for bit.
    """
    return torch.ones_like(probs)
