"""A run at W&B: transformers' callback, with completions to read and an end, and no value logged twice."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from transformers.integrations import WandbCallback
from transformers.integrations.integration_utils import rewrite_logs

from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.heartbeat import HEARTBEAT
from evenkeel.trainer.run.record.run_record import RunRecord
from evenkeel.trainer.run.record.wandb_file import records, row_of
from evenkeel.trainer.run.summary import ACCURACY
from evenkeel.trainer.step.records import Columns

ROLLOUTS = "rollouts"
"""The table of completions."""
MOST_ROWS = 64
"""Of a rollout batch in the table."""
MOST_BATCHES = 99
"""In the table, evenly spread over a run's steps; W&B shows 100 increments of a table."""
_STEP = "train/global_step"


class RunOnWandb(WandbCallback):
    """Logs a run, all of its parts as one W&B run; only on the main process, and not where ``WANDB_MODE=disabled``.

    A part that goes on from a checkpoint may train steps again that were logged before the interruption: W&B's own
    files tell what was, and nothing of it is logged again. The end of such a file is lost where the process was killed,
    so what ``metrics.jsonl`` has and W&B has not is logged first. W&B's run is opened when there is something new.
    """

    def __init__(self, trainer: Any, config: RunConfig, run: Path) -> None:
        super().__init__()
        trainer.remove_callback(WandbCallback)  # this one is in its place
        self.trainer, self.config, self.run = trainer, config, run
        self.table: Any = None
        self.newest: Columns = {}
        self.logged: dict[int, set[str]] = {}
        self.last_share = self.on_server = -1

    def setup(self, args: Any, state: Any, model: Any, **others: Any) -> None:
        if self._wandb.run is None:
            self._wandb.init(name=os.environ.get("WANDB_NAME") or args.run_name)
        super().setup(args, state, model, **others)
        run, config = self._wandb.run, self.config
        if run.resumed:  # online
            self.on_server = int(run.summary.get(_STEP, -1))
        fields = {"variant": config.name, "seed": config.run_seed, "branch_of": config.branch_of}
        run.config.update({"evenkeel": config.model_dump(), **fields}, allow_val_change=True)
        best = config.evaluation.keep_best
        for name in ("train/reward", f"train/{ACCURACY}", "eval/reward", f"eval/{ACCURACY}", *([best] if best else [])):
            run.define_metric(name, step_metric=_STEP, summary="last,min,max")
        run.log({_STEP: state.global_step}, commit=False)  # of what TRL logs before the first step

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        recorder = self.trainer.parts.recorder
        names = [part for name in recorder.reward_names for part in (f"rewards/{name}", f"{name}/reason")]
        columns = ["step", "prompt", "completion", *names, "advantage"]
        self.table = self._wandb.Table(columns, log_mode="INCREMENTAL", allow_mixed_types=True)
        if os.environ["WANDB_MODE"] == "online":  # its server tells too
            super().on_train_begin(args, state, control, **others)
        if state.global_step:
            self._catch_up(args, state, control)
        if recorder.sink is None:
            recorder.rows_per_batch = MOST_ROWS
        recorder.sink = partial(self._take, recorder.sink)
        if not self.logged:
            super().on_train_begin(args, state, control, **others)

    def _take(self, write: Callable[[int, Columns], None] | None, number: int, columns: Columns) -> None:
        if write is not None:
            write(number, columns)
        # the first that trains on it
        self.newest = {**columns, "step": [step + 1 for step in columns["step"]]}

    def _catch_up(self, args: Any, state: Any, control: Any) -> None:
        """Read what earlier parts have logged, and log what of it is lost up to the step at which the run goes on."""
        folder, name = Path(os.environ["WANDB_DIR"]), os.environ["WANDB_RUN_ID"]
        files = folder.glob(f"*wandb/*run-*-{name}/run-{name}.wandb")
        for file in sorted(files, key=lambda file: file.parent.name.removeprefix("offline-")):
            for row in map(row_of, records(file.read_bytes(), [])):
                step = int(row.get(_STEP, 0))
                self.logged.setdefault(step, set()).update(row)
                if (number := row.get(f"{ROLLOUTS}/increment_num")) is not None:
                    self.last_share = self._share(step, state)
                    earlier = row[f"{ROLLOUTS}/previous_increments_paths"]
                    self.table._increment_num = number + 1  # W&B asks its server; offline there is none
                    self.table._previous_increments_paths = [*earlier, row[f"{ROLLOUTS}/artifact_path"]]

        for line in RunRecord(self.run).metrics:
            then = copy(state)
            then.global_step = int(line.pop("step"))
            logs = {f"eval_{name[5:]}" if name.startswith("eval/") else name: x for name, x in line.items()}
            self.on_log(args, then, control, logs=logs)
        self.logged = {step: names for step, names in self.logged.items() if step > state.global_step}

    def _share(self, step: int, state: Any) -> int:
        return MOST_BATCHES * step // state.max_steps

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
        step = state.global_step
        known = self.logged.get(step, set())
        new = {name: x for name, x in logs.items() if not known.intersection(rewrite_logs({name: x}))}
        if not new or step <= self.on_server:
            return
        if not self._initialized:
            self.setup(args, state, self.trainer.model)
        if "reward" in new and self.newest and (share := self._share(step, state)) > self.last_share:
            self.last_share = share
            self._log_rollouts()
        super().on_log(args, state, control, logs=new, **others)

    def _log_rollouts(self) -> None:
        """Add the newest rollout batch to the table; it goes with what is logged next."""
        columns = [self.newest.get(name, repeat(None)) for name in self.table.columns]
        for row in islice(zip(*columns, strict=False), MOST_ROWS):
            self.table.add_data(*row)
        self._wandb.log({ROLLOUTS: self.table}, commit=False)
        for row in self.table.data:
            row.clear()  # it is in W&B's files
        self.newest = {}

    def end(self, summary: Mapping[str, Any], files: Iterable[Path]) -> None:
        """Put the held-out accuracy of a finished run's ``summary`` into W&B's, and ``files`` into an artifact."""
        if not self._initialized:  # all was logged before the interruption
            self.setup(self.trainer.args, self.trainer.state, self.trainer.model)
        run, key = self._wandb.run, f"eval_{ACCURACY}"
        found = {when: summary[f"accuracy_{when}"] for when in ("before", "after", "gain")}
        found["best"] = max((line[key] for line in RunRecord(self.run).metrics if key in line), default=None)
        run.summary.update({f"held_out/accuracy_{when}": x for when, x in found.items() if x is not None})
        artifact = self._wandb.Artifact(f"report-{run.id}", type="report")
        for file in files:
            artifact.add_file(str(file))
        run.log_artifact(artifact)


def finish_wandb() -> None:
    """Finish W&B's run, if there is one in this process; W&B gives up after WANDB_FINISH_TIMEOUT and says how to go on.

    All that was logged is in the run's folder before it is uploaded, so that nothing is lost.
    """
    wandb = sys.modules.get("wandb")
    run = getattr(wandb, "run", None)
    if wandb is None or run is None:
        return
    HEARTBEAT.enter("Uploading to W&B")
    run.finish()
    wandb.teardown()  # another run in this process has variables of its own
    if run.offline:
        folder = Path(run.dir).parents[1]
        print(f"W&B was offline. To send the run: wandb sync {folder}/offline-run-*-{run.id}", flush=True)
