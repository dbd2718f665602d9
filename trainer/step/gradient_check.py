"""Whether two cuts of the same rows give the same gradient, computed with the model at hand before it trains on one."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from trainer.step.microbatches import Batch
from trainer.step.observers import Means, SharedPrefixMeter

if TYPE_CHECKING:
    from trainer.step.rlvr_trainer import RLVRTrainer

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


def compared_gradients(trainer: "RLVRTrainer", first: Sequence[Batch], second: Sequence[Batch]) -> GradientComparison:
    """The gradients of this rank by both cuts, with nothing logged, drawn or remembered; all ranks must ask."""
    trainable = [(name, p) for name, p in trainer.model.named_parameters() if p.requires_grad]
    trainable.sort(key=lambda pair: pair[1].numel())
    chosen = trainable[:1]
    for name, parameter in trainable[1:]:
        if sum(p.numel() for _, p in chosen) + parameter.numel() > _ELEMENTS:
            break
        chosen.append((name, parameter))
    parameters = [parameter for _, parameter in chosen]
    with _leaving_no_trace(trainer):
        planner, trainer.planner = trainer.planner, None  # the first as TRL computes it
        try:
            size, one = _gradient(trainer, first, parameters)
        finally:
            trainer.planner = planner
        _, other = _gradient(trainer, second, parameters)
    return GradientComparison((one, other), [name for name, _ in chosen], size, _tolerance(trainer))


def _gradient(trainer: "RLVRTrainer", cut: Sequence[Batch], parameters: list[Tensor]) -> tuple[float, Tensor]:
    total, size = torch.zeros(sum(p.numel() for p in parameters), device=trainer.accelerator.device), 0.0
    for batch in cut:
        with torch.enable_grad(), trainer.compute_loss_context_manager():
            loss = trainer._compute_loss(trainer.model, batch)
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        grown = [p.new_zeros(p.numel()) if g is None else g.flatten() for g, p in zip(found, parameters, strict=True)]
        flat = torch.cat([part.float() for part in grown])
        total, size = total + flat, size + float(flat.norm())
    return size, total


def _tolerance(trainer: "RLVRTrainer") -> float:
    """Half precision keeps 8 to 11 bits of each number, TF32 10: under bfloat16 autocast two cuts of the countdown
    policy's batch differ by 2 %, in float32 by 2e-6. A denominator wrong by less than 10 % is not seen there."""
    args = trainer.args
    coarse = args.bf16 or args.fp16 or args.tf32 or trainer.model.dtype != torch.float32
    return 0.1 if coarse else 1e-3


@contextmanager
def _leaving_no_trace(trainer: "RLVRTrainer") -> Iterator[None]:
    """Without dropout, of which each cut would draw its own; metrics, random stream and strategies' state as before."""
    before = trainer._metrics["train"], trainer._means, trainer._shared_prefixes
    stateful: list[Any] = [part.function for part in trainer.strategies.all if part.has_state]
    states = [function.state_dict() for function in stateful]
    dropping = [module for module in trainer.model.modules() if module.training and drops(module)]
    trainer._metrics["train"], trainer._means, trainer._shared_prefixes = (
        defaultdict(list),
        Means(),
        SharedPrefixMeter(),
    )
    devices = [trainer.accelerator.device] if trainer.accelerator.device.type == "cuda" else []
    for module in dropping:
        module.training = False
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        trainer._metrics["train"], trainer._means, trainer._shared_prefixes = before
        for function, state in zip(stateful, states, strict=True):
            function.load_state_dict(state)
        for module in dropping:
            module.training = True


def drops(module: nn.Module) -> bool:
    """Whether a module leaves out numbers at random while it trains."""
    attention = bool(getattr(module, "attention_dropout", 0.0))
    return attention or (isinstance(module, nn.Dropout) and module.p > 0)
