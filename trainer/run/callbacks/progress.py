"""What a person sees of a run in progress."""

import sys
import time
from collections.abc import Callable
from typing import Any

from tqdm import tqdm
from transformers import TrainerCallback

from evenkeel.trainer.run.heartbeat import HEARTBEAT
from evenkeel.trainer.run.summary import ACCURACY

_DOING = {
    "generate": "generates completions",
    "sync": "hands the weights to vLLM",
    "old_logps": "scores completions",
    "reference": "scores completions under the reference",
    "verify_wait": "scores answers",
    "prepare": "prepares a rollout batch",
    "update": "trains on a rollout batch",
    "log": "logs",
}
"""Phase of a step → what the run does in it."""
SECONDS_BETWEEN_LINES = 10.0
"""In a log file, where no bar moves."""
_SHOWN = {"reward": "reward", "accuracy": ACCURACY, "length": "completions/mean_length", "entropy": "entropy"}
"""Word → metric."""


class Progress(TrainerCallback):
    """Reward, accuracy, length and entropy: one line that moves (a terminal), or one every few seconds.

    Where that line does not come for long, `HEARTBEAT` prints the phase.

    Args:
        phase: returns the current phase of a step, of `evenkeel.trainer.step.phases.TIMED`; ``None`` between steps.
    """

    def __init__(self, phase: Callable[[], str | None]) -> None:
        self.phase = phase
        self.bar: Any = None
        self.last_line = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero and sys.stderr.isatty():
            self.bar = tqdm(total=state.max_steps, initial=state.global_step, dynamic_ncols=True, unit="step")

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        step = state.global_step + 1  # the one that begins

        def under_way() -> str:
            doing = _DOING.get(self.phase() or "", "evaluates, saves or loads rows")
            return f"step {step}/{state.max_steps}: {doing}"

        HEARTBEAT.enter(under_way)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)
        HEARTBEAT.has_stepped = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if state.is_world_process_zero and (held_out := (logs or {}).get(f"eval_{ACCURACY}")) is not None:
            tqdm.write(f"step {state.global_step}: held-out accuracy {held_out:.3f}")
            HEARTBEAT.printed()
        values = {name: f"{logs[key]:.3g}" for name, key in _SHOWN.items() if (logs or {}).get(key) is not None}
        if not state.is_world_process_zero or "reward" not in values:
            return
        if self.bar is not None:
            self.bar.set_postfix(values)
        elif time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            words = "  ".join(f"{name} {value}" for name, value in values.items())
            tqdm.write(f"step {state.global_step}/{state.max_steps}  {words}")
            sys.stdout.flush()
            HEARTBEAT.printed()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        if self.bar is not None:
            self.bar.close()


class Samples(TrainerCallback):
    """Shows two completions of TRL's table ``logs``, as of `samples`, every ``every_steps`` steps."""

    def __init__(self, logs: dict[str, Any], every_steps: int) -> None:
        self.logs = logs
        self.every_steps = every_steps

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not state.is_world_process_zero or state.global_step % self.every_steps:
            return
        for sample in samples(self.logs, 2):
            lines = [f"    {column}: {' '.join(str(value).split())}" for column, value in sample.items()]
            tqdm.write("\n".join([f"  sample at step {state.global_step}", *lines]))


def samples(logs: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Up to ``number`` completions of the newest rollout batch in TRL's table, evenly spread: column → value."""
    columns = {"prompt": logs["prompt"], "completion": logs["completion"]}
    columns |= {**logs["rewards"], **logs["extra"], "advantage": logs["advantages"]}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    for row in rows:
        for name in ("prompt", "completion"):
            row[name] = row[name] if isinstance(row[name], str) else row[name][-1]["content"]
    return rows[:: max(1, len(rows) // max(1, number))][:number]
