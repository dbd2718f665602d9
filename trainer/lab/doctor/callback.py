"""The doctor's findings, printed during a run."""

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from evenkeel.trainer.lab.doctor.rules import Examination


class Doctor(TrainerCallback):
    """Prints by ``say``, on rank 0, what the doctor's rules find in the log: once in a run, even if it is resumed."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.examination = Examination()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.examination.add_all((line["step"], line) for line in state.log_history)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        for finding in self.examination.add(state.global_step, logs or {}):
            if state.is_world_process_zero:
                self.say(f"step {state.global_step}: {finding.severity}: {finding.text} {finding.advice}")
