"""Gradients of large models in few dimensions: inner products survive, with an error that can be stated."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


class CountSketch:
    """A random linear map of all parameters' gradients to ``dimensions`` numbers: each goes to one of them, by a sign.

    ``⟨Sx, Sy⟩`` is unbiased, with variance at most ``(‖x‖² ‖y‖² + ⟨x, y⟩²) / dimensions`` (Charikar, Chen and
    Farach-Colton 2002; Weinberger et al., arXiv 0902.2206): cosines are off by `error` or so.

    Args:
        dimensions: ``None`` = no map: the gradient itself.
        sizes: how many numbers each parameter has.
    """

    def __init__(self, dimensions: int | None, sizes: Sequence[int], seed: int = 0) -> None:
        self.dimensions, self.sizes = dimensions, list(sizes)
        self.seeds = [seed + place for place in range(len(self.sizes))]

    @property
    def length(self) -> int:
        """Numbers of a gradient's image."""
        return sum(self.sizes) if self.dimensions is None else self.dimensions

    @property
    def error(self) -> float:
        """Standard error of a cosine, at most: ``√(2 / dimensions)``; 0 without a map."""
        return 0.0 if self.dimensions is None else math.sqrt(2 / self.dimensions)

    def __call__(self, gradients: Sequence[Tensor]) -> Tensor:
        """(length,) of the gradients of all parameters, in their order."""
        if self.dimensions is None:
            return torch.cat([gradient.flatten().float() for gradient in gradients])
        image = torch.zeros(1, self.dimensions)
        for gradient, seed in zip(gradients, self.seeds, strict=True):
            add_image(image, gradient.flatten().float().cpu()[None], seed)
        return image[0]


def add_image(image: Float[Tensor, "S dimensions"], rows: Float[Tensor, "S D"], seed: int) -> None:
    """Add the images of so many rows to ``image``, each by the same map."""
    dimensions = image.shape[1]
    random = torch.Generator().manual_seed(seed)
    places = torch.randint(2 * dimensions, (rows.shape[1],), generator=random)
    image.index_add_(1, places // 2, rows * (1 - 2 * (places % 2)))
