"""The trainer of a run: faults, full disks and exhausted memory end in a message, and cost as little as they can."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from trainer.run.processes import FAILED, STOPPED_WITHOUT_CHECKPOINT


def guarded_trainer(fault_folder: Path, max_skipped: int, **arguments: Any) -> Any:
    """`RLVRTrainer` behind its guards: see `FaultGuard`, `DiskGuard` and `MemoryGuard` in `trainer.step`."""
    from trainer import RLVRTrainer
    from trainer.step.faults import FaultGuard
    from trainer.step.full_disk import DiskGuard
    from trainer.step.out_of_memory import MemoryGuard
    from trainer.step.rollout_records import RolloutRecorder
    from trainer.step.token_class_meter import TokenClassMeter

    class GuardedTrainer(MemoryGuard, DiskGuard, RolloutRecorder, FaultGuard, TokenClassMeter, RLVRTrainer):
        """All that watch and keep, the outermost first, around a trainer of one optimizer step."""

        seconds_before: float = 0.0
        """Of the parts of a resumed run before this one."""

        def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
            """The time of training is that of the whole run, and so are its rates."""
            if self.seconds_before and (seconds := logs.get("train_runtime")):
                whole = seconds + self.seconds_before
                rates = {name: value * seconds / whole for name, value in logs.items() if name.endswith("_per_second")}
                logs |= {"train_runtime": whole, **rates}
            super().log(logs, start_time)

        def create_model_card(self, *_: Any, **__: Any) -> None:
            """None: TRL's knows no local base model and no result. ``scripts/export.py`` writes a true one."""

        def _issue_warnings_after_load(self, load_result: Any) -> None:
            """Of a checkpoint's missing weights those that are tied to others are none."""
            tied = getattr(self.model, "all_tied_weights_keys", None) or {}
            missing = [name for name in load_result.missing_keys if name not in tied]
            super()._issue_warnings_after_load(
                SimpleNamespace(missing_keys=missing, unexpected_keys=load_result.unexpected_keys)
            )

    # by which TRL names what it times, and what it stands for
    GuardedTrainer.__name__ = GuardedTrainer.__qualname__ = RLVRTrainer.__name__
    trainer = GuardedTrainer(**arguments)
    trainer.args.logging_nan_inf_filter = False  # the guard sees to it
    trainer.fault_folder, trainer.max_skipped = fault_folder, max_skipped
    trainer.watches_disk, trainer.tell = True, tell
    return trainer


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
