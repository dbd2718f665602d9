"""Checks whose outcome stays on the device until it is read once for many."""

from collections.abc import Callable

import torch
from torch import Tensor

from rewards.registry import PartError


class DeferredChecks:
    """Collects what `trainer.algorithms.results` suspects; `raise_first` waits for the device once for all of it."""

    def __init__(self) -> None:
        self._suspicions: list[tuple[Tensor, Callable[[], PartError]]] = []

    def __call__(self, bad: Tensor, error: Callable[[], PartError]) -> None:
        """Note where a result is bad; a `trainer.algorithms.results.Suspect`."""
        self._suspicions.append((bad.any(), error))

    def raise_first(self) -> None:
        """Raise the first error that was suspected with reason since the last call."""
        suspicions, self._suspicions = self._suspicions, []
        if not suspicions:
            return
        for is_bad, (_, error) in zip(torch.stack([flag for flag, _ in suspicions]).tolist(), suspicions, strict=True):
            if is_bad:
                raise error()
