"""Evenkeel's trainer: a subclass of TRL's `GRPOTrainer` and the pure functions that it moves tensors between."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenkeel.trainer.step.trainer import RLVRTrainer as RLVRTrainer

# a checkout that is not installed, in which the folder's own name was imported
if __name__ == "trainer" and find_spec("evenkeel") is None:
    sys.modules["evenkeel"] = package = ModuleType("evenkeel")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]

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
