"""Evenkeel's trainer: a subclass of TRL's `GRPOTrainer` and the pure functions that it moves tensors between."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenkeel.trainer.step.trainer import RLVRTrainer as RLVRTrainer

__all__ = ["RLVRTrainer"]
_ALGORITHMS = (
    "advantages",
    "coefficients",
    "diagnostics",
    "prompt_samplers",
    "sequence_weights",
    "token_weights",
    "update_schedules",
)


def __getattr__(name: str) -> Any:
    """Import what is asked for: reading a configuration must not need torch, nor the mathematics TRL."""
    if name == "RLVRTrainer":
        return import_module("evenkeel.trainer.step.trainer").RLVRTrainer
    if name in _ALGORITHMS:
        return import_module(f"evenkeel.trainer.algorithms.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
