"""The trainer of a run: faults, full disks and exhausted memory end in a message, and cost as little as they can."""

from typing import Any

from trainer.run.processes import FAILED, STOPPED_WITHOUT_CHECKPOINT


def tell(text: str) -> None:
    """A line of its own on standard output, at once: the progress line may stand before it."""
    print(f"\n{text}", flush=True)


def without_last_checkpoint(trainer: Any, stopped: bool) -> int:
    """What is said, and the exit status, of a run whose last checkpoint did not fit on its disk."""
    if trainer.accelerator.is_main_process:
        why = "stopped" if stopped else "ended"
        tell(
            f"The run {why} at step {trainer.state.global_step} without a checkpoint of it, as said above. When there "
            "is room, --resume auto trains the steps since the newest checkpoint again, to the same weights."
        )
    return STOPPED_WITHOUT_CHECKPOINT if stopped else FAILED
