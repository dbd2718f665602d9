"""The ordinary update."""

from evenkeel.trainer.algorithms.contract import UpdateSchedule


def single_pass() -> UpdateSchedule:
    """One pass over all tokens: the ordinary update.

    Source: TRL's GRPOTrainer.
    Evidence: the trainer with it is stock TRL, weights equal bit for bit.
    """
    return UpdateSchedule(1, lambda probs, mask, pass_index: mask.bool())
