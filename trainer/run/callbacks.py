"""What a person sees of a run while it goes on, and how it stops when asked to."""

import json
import math
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from tqdm import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trainer.evaluation.result import EvaluationResult
from trainer.run.directory import read_metrics

_HELD_OUT_SET = re.compile("^eval_(?!verifier/)(?=[^/]+/)")


class MetricsFile(TrainerCallback):
    """Appends every logged metric to ``metrics.jsonl``, one flushed line a log: what reports read, W&B or not.

    A line holds ``step`` and ``epoch`` beside TRL's and our keys; a held-out set's are written ``eval/<dataset>/…``, as
    W&B and TensorBoard show them. On a resume, lines after the checkpoint's step are dropped: those steps are trained
    again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.is_world_process_zero and state.global_step and self.path.exists():
            kept = [entry for entry in read_metrics(self.path) if entry["step"] <= state.global_step]
            draft = self.path.with_suffix(".draft")  # a kill while it is written must not cost the history
            draft.write_text("".join(f"{json.dumps(entry)}\n" for entry in kept))
            draft.replace(self.path)

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any
    ) -> None:
        if state.is_world_process_zero and logs:
            with self.path.open("a") as file:
                named = {_HELD_OUT_SET.sub("eval/", key): value for key, value in logs.items()}
                file.write(json.dumps({"step": state.global_step, **named}) + "\n")


class Progress(TrainerCallback):
    """Reward, accuracy, length, entropy and time left: one line that moves (a terminal), or one every few seconds.

    Args:
        accuracy: key of the metric that is shown as accuracy.
        seconds_between_lines: in a log file.
    """

    def __init__(self, accuracy: str, seconds_between_lines: float = 10.0) -> None:
        self.shown = {
            "reward": "reward",
            "accuracy": accuracy,
            "length": "completions/mean_length",
            "entropy": "entropy",
        }
        self.seconds_between_lines = seconds_between_lines
        self.bar: Any = None
        self.started = self.last_line = 0.0
        self.first_step = 0

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.started, self.last_line, self.first_step = time.monotonic(), 0.0, state.global_step
        if state.is_world_process_zero and sys.stderr.isatty():
            self.bar = tqdm(total=state.max_steps, initial=state.global_step, dynamic_ncols=True, unit="step")

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any
    ) -> None:
        if state.is_world_process_zero and (held_out := (logs or {}).get(f"eval_{self.shown['accuracy']}")) is not None:
            tqdm.write(f"step {state.global_step}: held-out accuracy {held_out:.3f}")
        values = {name: f"{logs[key]:.3g}" for name, key in self.shown.items() if (logs or {}).get(key) is not None}
        if not state.is_world_process_zero or "reward" not in values:
            return
        if self.bar is not None:
            self.bar.set_postfix(values)
        elif time.monotonic() - self.last_line >= self.seconds_between_lines:
            self.last_line = time.monotonic()
            words = "  ".join(f"{name} {value}" for name, value in values.items())
            tqdm.write(f"step {state.global_step}/{state.max_steps}  {words}  {self._time_left(state)}")
            sys.stdout.flush()

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.bar is not None:
            self.bar.close()

    def _time_left(self, state: TrainerState) -> str:
        done = state.global_step - self.first_step
        if not done:
            return ""
        seconds = (time.monotonic() - self.started) / done * (state.max_steps - state.global_step)
        return f"{int(seconds // 60)}:{int(seconds % 60):02d} left"


class FinalEvaluation(TrainerCallback):
    """Evaluates at the last step, inside training: before and after it, DeepSpeed has no engine to generate with."""

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step >= state.max_steps:
            control.should_evaluate = True


class KeepBest(TrainerCallback):
    """Asks for a checkpoint when an evaluation of the trained policy is the best so far; transformers then keeps it."""

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, metrics: Any = None, **_: Any
    ) -> None:
        best = -math.inf if state.best_metric is None else state.best_metric
        if state.global_step and metrics[args.metric_for_best_model] > best:
            control.should_save = True


class EvaluationFiles(TrainerCallback):
    """Writes each evaluation's completions and numbers under ``folder``: see `EvaluationResult.write`.

    Args:
        newest: returns the results of the newest evaluation, one a held-out set.
    """

    def __init__(self, folder: Path, newest: Callable[[], Sequence[EvaluationResult]]) -> None:
        self.folder = folder
        self.newest = newest

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.is_world_process_zero:
            for result in self.newest():
                result.write(self.folder)


class EvaluationProgress(TrainerCallback):
    """Batches answered and time left of an evaluation, one line every few seconds."""

    def __init__(self, seconds_between_lines: float = 10.0) -> None:
        self.seconds_between_lines = seconds_between_lines
        self.batches: Any = None
        self.done = 0
        self.started = self.last_line = 0.0

    def on_prediction_step(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        eval_dataloader: Any = None,
        **_: Any,
    ) -> None:
        now = time.monotonic()
        if eval_dataloader is not self.batches:  # the time left is known from the second batch on
            self.batches, self.done, self.started, self.last_line = eval_dataloader, 0, now, now
        else:
            self.done += 1
        if self.done and state.is_world_process_zero and now - self.last_line >= self.seconds_between_lines:
            self.last_line, left = now, len(self.batches) - self.done - 1
            seconds = int((now - self.started) / self.done * left)
            tqdm.write(f"  {self.done + 1}/{len(self.batches)} batches  {seconds // 60}:{seconds % 60:02d} left")


class Samples(TrainerCallback):
    """Shows a few completions of the newest rollout batch with their verdicts, every ``every_steps`` steps.

    Args:
        newest: returns the given number of samples, each a mapping of column → value.
    """

    def __init__(self, newest: Callable[[int], list[dict[str, Any]]], every_steps: int, number: int) -> None:
        self.newest = newest
        self.every_steps = every_steps
        self.number = number

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if not state.is_world_process_zero or not self.number or state.global_step % self.every_steps:
            return
        for sample in self.newest(self.number):
            lines = [f"    {column}: {' '.join(str(value).split())}" for column, value in sample.items()]
            tqdm.write("\n".join([f"  sample at step {state.global_step}", *lines]))


class WandbRunConfig(TrainerCallback):
    """Sends the resolved configuration to the W&B run that transformers has opened, beside TRL's arguments."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        import wandb

        if wandb.run is not None:  # on the main process
            wandb.run.config.update({"evenkeel": self.config}, allow_val_change=True)


class StopAtBlockEdge(TrainerCallback):
    """Ctrl-C or SIGTERM: train the rollout batch in hand to its end, save a checkpoint, stop. Ctrl-C twice: stop now.

    Only between rollout batches is a checkpoint exact. All ranks stop at the same step, whichever of them was asked.

    Args:
        steps_per_block: optimizer steps for which one rollout batch is trained.
        any_rank: whether the flag is up on any rank.
    """

    def __init__(self, steps_per_block: int, any_rank: Callable[[bool], bool]) -> None:
        self.steps_per_block = steps_per_block
        self.any_rank = any_rank
        self.requested = False
        self.stopped = False

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.previous = {number: signal.signal(number, self._request) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step >= state.max_steps or state.global_step % self.steps_per_block:
            return
        if self.any_rank(self.requested):
            self.stopped = control.should_save = control.should_training_stop = True

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True
        tqdm.write("Stopping after this rollout batch, with a checkpoint. Ctrl-C again stops at once, without one.")
