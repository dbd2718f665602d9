"""What papers say, as pure functions of tensors; torch alone. README.md: notation, and how to write a strategy."""

from evenkeel.trainer.algorithms.contract import traits

__all__ = ["traits"]
