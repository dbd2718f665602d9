"""The weight of a whole trajectory: what the configured loss gives it, and transforms of it."""

from trainer.algorithms.sequence_weights.loss_weights import (
    ONE_DENOMINATOR,
    PER_SEQUENCE_MEAN,
    loss_sequence_weights,
)

__all__ = ["ONE_DENOMINATOR", "PER_SEQUENCE_MEAN", "loss_sequence_weights"]
