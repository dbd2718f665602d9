"""Rollout batches counted in micro-batches, the forward passes that train them."""

from typing import Any


def forwards_per_rollout(args: Any, num_passes: int) -> int:
    """Micro-batches, of all iterations and passes, that one rollout batch is trained for.

    Args:
        args: TRL's `GRPOConfig`.
        num_passes: of the update schedule.
    """
    count: int = args.steps_per_generation * args.num_iterations * num_passes
    return count


def rollout_number(trainer: Any) -> int:
    """How many rollout batches of the run came before the one in training.

    The same on any number of processes, and in a run that was resumed between batches.
    """
    args = trainer.args
    place = trainer._step % args.gradient_accumulation_steps
    forwards = trainer.state.global_step * args.gradient_accumulation_steps + place
    number: int = forwards // forwards_per_rollout(args, trainer.strategies.schedule.num_passes)
    return number
