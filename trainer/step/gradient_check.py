"""Whether two cuts of the same rows give the same gradient, computed with the model at hand before it trains on one."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from evenkeel.trainer.algorithms.strategies import Strategies
from evenkeel.trainer.step.compatibility import drops
from evenkeel.trainer.step.rollout import Batch
from evenkeel.trainer.step.temporarily import random_streams_kept

_ELEMENTS = 2**24
"""Gradients are compared for the smallest parameters, in all layers, up to this many numbers: no second model's worth
of memory; the backward pass that reaches them is the whole one."""


@dataclass(frozen=True)
class GradientComparison:
    """The gradients of one optimizer step's part of a rollout batch, by two cuts.

    Attributes:
        gradients: by the one and the other, of ``parameters`` one after the other.
        size: sum of the norms of the first cut's micro-batches: what float noise is a share of.
        tolerance: the largest difference, as a share of ``size``, that rounding in the model's precision explains.
    """

    gradients: tuple[Tensor, Tensor]
    parameters: list[str]
    size: float
    tolerance: float

    @property
    def difference(self) -> float:
        """‖g₁ − g₂‖ as a share of ``size``; 0 where there is no gradient."""
        first, second = self.gradients
        return float((first - second).norm()) / self.size if self.size > 0 else float(second.norm())

    @property
    def agree(self) -> bool:
        """Whether the difference is a rounding error; False for a NaN."""
        return self.difference <= self.tolerance


def compared_gradients(
    loss_of: Callable[[Batch], Tensor],
    model: nn.Module,
    first: Sequence[Batch],
    second: Sequence[Batch],
    *,
    is_coarse: bool,
) -> GradientComparison:
    """The gradients of this rank by both cuts; all ranks must ask. To be called inside `leaving_no_trace`.

    Args:
        is_coarse: whether the forward passes round to less than float32. Half precision keeps 8 to 11 bits of each
            number, TF32 10: in bfloat16 two cuts of the countdown policy's batch differ by up to 1.9 % (144
            optimizer steps), in float32 by 2e-6. A denominator wrong by less than 5 % is not seen there.
    """
    trainable = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    trainable.sort(key=lambda pair: pair[1].numel())
    chosen = trainable[:1]
    for name, parameter in trainable[1:]:
        if sum(p.numel() for _, p in chosen) + parameter.numel() > _ELEMENTS:
            break
        chosen.append((name, parameter))
    parameters: list[Tensor] = [parameter for _, parameter in chosen]
    size, one = _gradient(loss_of, first, parameters)
    _, other = _gradient(loss_of, second, parameters)
    return GradientComparison((one, other), [name for name, _ in chosen], size, 0.05 if is_coarse else 1e-3)


def _gradient(
    loss_of: Callable[[Batch], Tensor], cut: Sequence[Batch], parameters: list[Tensor]
) -> tuple[float, Tensor]:
    """Sum of the norms of the cut's micro-batches, and the sum of their gradients."""
    total, size = torch.zeros(sum(p.numel() for p in parameters), device=parameters[0].device), 0.0
    for batch in cut:
        with torch.enable_grad():
            loss = loss_of(batch)
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        grown = [p.new_zeros(p.numel()) if g is None else g.flatten() for g, p in zip(found, parameters, strict=True)]
        flat = torch.cat([part.float() for part in grown])
        total, size = total + flat, size + float(flat.norm())
    return size, total


@contextmanager
def leaving_no_trace(
    model: nn.Module, strategies: Strategies, metrics: dict[str, Any], device: torch.device
) -> Iterator[None]:
    """Without dropout, of which each cut would draw its own; ``metrics["train"]``, random stream and strategies' state
    are afterwards as before."""
    stateful: list[Any] = [part.function for part in strategies.all if part.has_state]
    states = [deepcopy(function.state_dict()) for function in stateful]  # it may hand out what it writes into
    dropping = [module for module in model.modules() if module.training and drops(module)]
    logged, metrics["train"] = metrics["train"], defaultdict(list)
    for module in dropping:
        module.training = False
    try:
        with random_streams_kept(device):
            yield
    finally:
        metrics["train"] = logged
        for function, state in zip(stateful, states, strict=True):
            function.load_state_dict(state)
        for module in dropping:
            module.training = True
