"""Random projection of the gradients of large models, with a known error of inner products."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

MOST = 2**18
"""Largest length of a projected gradient."""


class CountSketch:
    """A random linear map of all parameters' gradients to ``length`` numbers: each is added to one, with a random sign.

    ``⟨Sx, Sy⟩`` is unbiased, with variance at most ``(‖x‖² ‖y‖² + ⟨x, y⟩²) / length`` (Charikar, Chen and
    Farach-Colton 2002; Weinberger et al., arXiv 0902.2206): the error of cosines is about `error`. Models of at most
    ``most`` parameters are not mapped. ``sizes``: how many numbers each parameter has.
    """

    def __init__(self, sizes: Sequence[int], most: int = MOST, seed: int = 0) -> None:
        self.is_exact, self.length = sum(sizes) <= most, min(sum(sizes), most)
        self.seeds = [seed + place for place in range(len(sizes))]

    @property
    def error(self) -> float:
        """Upper bound on the standard error of a cosine, ``√(2 / length)``; 0 without a map."""
        return 0.0 if self.is_exact else math.sqrt(2 / self.length)

    def __call__(self, gradients: Sequence[Tensor]) -> Tensor:
        """(length,) of the gradients of all parameters, in their order."""
        flat = [gradient.flatten().float().cpu() for gradient in gradients]
        if self.is_exact:
            return torch.cat(flat)
        image = torch.zeros(self.length)
        for gradient, seed in zip(flat, self.seeds, strict=True):
            random = torch.Generator().manual_seed(seed)
            places = torch.randint(2 * self.length, gradient.shape, generator=random)
            image.index_add_(0, places // 2, gradient * (1 - 2 * (places % 2)))
        return image
