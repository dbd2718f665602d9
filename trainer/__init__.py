"""Evenkeel's trainer: a subclass of TRL's `GRPOTrainer` and the pure functions that it moves tensors between."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.rlvr_trainer import RLVRTrainer as RLVRTrainer

__all__ = ["RLVRTrainer"]


def __getattr__(name: str) -> Any:
    """Import `RLVRTrainer`, and with it TRL, when it is first asked for: reading a configuration must not need it."""
    if name == "RLVRTrainer":
        from trainer.rlvr_trainer import RLVRTrainer

        return RLVRTrainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
