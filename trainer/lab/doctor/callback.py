"""What a run's log shows to be wrong, while the run goes on."""

from collections.abc import Callable, Mapping
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from evenkeel.trainer.lab.doctor.rules import Examination, Finding
from evenkeel.trainer.run.callbacks.idle_batches import CUT_OFF, IDLE


class Doctor(TrainerCallback):
    """Says what the doctor's rules find in the log, each finding once in a run, also where it is resumed.

    Args:
        counts: those of `IdleBatches`. While it counts batches, what it says of them is left to it.
        say: what prints a line; called on rank 0 alone.
    """

    SAID_BY_IDLE_BATCHES: Mapping[str, frozenset[str]] = {
        IDLE: frozenset({"nothing-trained", "dead-groups", "truncated-and-wrong", "truncated"}),
        CUT_OFF: frozenset({"truncated-and-wrong", "truncated"}),
    }

    def __init__(self, counts: Mapping[str, int], say: Callable[[str], None]) -> None:
        self.counts, self.say = counts, say
        self.examination = Examination()
        self.waiting: list[tuple[int, Finding]] = []

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.examination.add_all((line["step"], line) for line in state.log_history)

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any
    ) -> None:
        found = self.examination.add(state.global_step, logs or {})
        self.waiting += [(state.global_step, finding) for finding in found]
        said = [names for count, names in self.SAID_BY_IDLE_BATCHES.items() if self.counts.get(count)]
        covered = frozenset().union(*said)
        if state.is_world_process_zero:
            for step, finding in self.waiting:
                if finding.rule.name not in covered:
                    self.say(f"step {step}: {finding.rule.severity}: {finding.text} {finding.advice}")
        self.waiting = [each for each in self.waiting if each[1].rule.name in covered]
