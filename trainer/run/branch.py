"""A run that starts from a checkpoint of another run: what may differ between them, and the first checkpoint.

The weights, the optimizer's moments, the random states and the place in the data are the parent's; the settings are the
branch's own. With common random numbers both draw with the same noise, so that a branch that changes nothing *is* the
rest of its parent, bit for bit, and any other differs from it by its settings alone.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.layers import changes, flattened
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.trl_arguments import grpo_default
from evenkeel.trainer.run.record.checkpoints import (
    checkpoints_of,
    fault_of,
    files_of,
    fingerprints,
    step_of,
    write_checkpoint_manifest,
)
from evenkeel.trainer.run.record.files import CONFIG, MANIFEST, TRAINER_STATE, CheckpointRecord, read_record, write_json
from evenkeel.trainer.run.record.manifest import differences, policy_files
from evenkeel.trainer.run.record.run_record import RunRecord

SHARED = (
    "seed",
    "common_random_numbers",
    "model",
    "data.train",
    "data.system_prompt",
    "data.max_unusable",
    "trl.shuffle_dataset",
    "trl.data_seed",
    "trl.optim",
    "trl.optim_args",
)
"""A branch cannot change these: its checkpoint holds the place in these rows and the state of this optimizer."""
_OF_THE_PLAN = ("prompts_per_rollout", "num_generations")


@dataclass(frozen=True)
class Branch:
    """Where a run begins.

    Attributes:
        checkpoint: the parent's, verified.
        step: the number of that step in the branch, which may take more or fewer optimizer steps for a rollout batch.
        kept: kinds of strategies that are the parent's, and continue with their state.
    """

    checkpoint: Path
    step: int
    kept: tuple[str, ...]

    def begin(self, run: Path) -> Path:
        """The checkpoint in ``run``, a new directory, from which the branch starts; its large files are links."""
        import torch

        from evenkeel.trainer.step.checkpoint import FILE, begun_branch, content_of

        start = run / f"checkpoint-{self.step}"
        start.mkdir()
        for name in files_of(self.checkpoint):
            if name not in (TRAINER_STATE, FILE):
                (start / name).parent.mkdir(parents=True, exist_ok=True)
                try:
                    os.link(self.checkpoint / name, start / name)
                except OSError:  # another file system, or one without links
                    shutil.copy2(self.checkpoint / name, start / name)
        state = json.loads((self.checkpoint / TRAINER_STATE).read_text())
        state |= {"global_step": self.step, "log_history": []}
        state |= {"best_metric": None, "best_global_step": None, "best_model_checkpoint": None}
        write_json(start / TRAINER_STATE, state)
        ratio = Fraction(self.step, step_of(self.checkpoint))
        torch.save(begun_branch(content_of(self.checkpoint), self.kept, ratio), start / FILE)
        world_size = read_record(self.checkpoint / MANIFEST, CheckpointRecord)["world_size"]
        write_checkpoint_manifest(start, fingerprints(start, files_of(start)), world_size)
        return start


def checkpoint_at(named: str) -> Path:
    """The checkpoint that ``RUN@STEP`` names; a `Refusal` where there is none."""
    run, at, step = named.rpartition("@")
    if not at or not run or not step.isdecimal():
        raise Refusal(f"{named!r} names no checkpoint of a run. Write RUN@STEP: runs/quickstart@40.", code="branch")
    found = Path(run).expanduser() / f"checkpoint-{step}"
    if not found.is_dir():
        raise Refusal(f"{named}: {_no_checkpoint(found)}", code="branch")
    return found.absolute()


def branch_of(experiment: Any, train_rows: str | None) -> Branch | None:
    """Where the run of an `Experiment` begins, if that is another run's checkpoint.

    Args:
        train_rows: the fingerprint of the rows to train on; ``None`` while cells are planned: rows are not compared
            and the checkpoint's files not verified, which each cell does when it starts.

    Raises:
        Refusal: it cannot begin there; the message has a paragraph for each reason.
    """
    config: RunConfig = experiment.config
    if config.branch_of is None:
        return None
    checkpoint = Path(config.branch_of)
    if not checkpoint.is_dir() or not (checkpoint.parent / CONFIG).is_file():
        raise config_error("branch", "branch_of", _no_checkpoint(checkpoint), "")
    if train_rows is not None and (fault := fault_of(checkpoint)):
        what = f"is {checkpoint}: {fault}."
        raise config_error("branch", "branch_of", what, "Name another checkpoint of that run.")
    parent = RunRecord(checkpoint.parent)
    theirs = type(experiment)(parent.config, experiment.folder, experiment.processes)
    reasons = [*_unfit(experiment, parent)]
    if changed := _differences(experiment, theirs, parent.manifest, train_rows):
        shown = "".join(f"\n  {line}" for line in changed)
        reasons.append(f"A branch has its parent's policy, optimizer and prompts. Not as in {parent.path}:{shown}")
    before, now = theirs.steps_per_rollout, experiment.steps_per_rollout
    step = step_of(checkpoint)
    if before != now:
        from evenkeel.trainer.step.checkpoint import ROLLOUT_BATCHES, content_of

        rollouts = content_of(checkpoint)["counts"].get(ROLLOUT_BATCHES, 0)
        if step != rollouts * before:
            reasons.append(f"{checkpoint} lies inside a rollout batch. Name an earlier one.")
        step = rollouts * now
    if 0 < (last := config.argument("max_steps")) <= step:
        reasons.append(f"trl.max_steps = {last}, and the branch begins at step {step}. Write a larger one.")
    if reasons:
        raise Refusal("\n\n".join(reasons), code="branch")
    strategies, own = parent.config.algorithm.strategies, config.algorithm.strategies
    return Branch(checkpoint, step, tuple(kind for kind in own if own[kind] == strategies[kind]))


def _unfit(experiment: Any, parent: RunRecord) -> Iterator[str]:
    """Why ``parent`` has no exact branches: DeepSpeed, other random numbers, staleness."""
    if experiment.args.deepspeed_plugin is not None:
        yield "branch_of with DeepSpeed, which restores the parent's learning rate. Train with DDP or FSDP."
    if not parent.config.common_random_numbers:
        yield f"{parent.path} ran without common random numbers. Run it with common_random_numbers: true."
    if parent.config.speed.staleness:
        yield f"{parent.path} trained with speed.staleness. Branch from a run with staleness: 0; a branch may have any."


def _differences(ours: Any, theirs: Any, record: dict[str, Any], train_rows: str | None) -> list[str]:
    """A line for each thing that must be the parent's and is not: ``seed: 4 → 5``."""
    now = {"world_size": ours.processes, "model_files": policy_files(ours.config)}
    before = {name: record.get(name) for name in now}
    if train_rows is not None:
        now |= {"data_fingerprints": {"train": train_rows}}
        before |= {"data_fingerprints": {"train": record.get("data_fingerprints", {}).get("train")}}
    settings = []
    for each in (theirs, ours):
        found = flattened(each.config.model_dump()) | {"seed": each.config.run_seed}
        for key in (key for key in SHARED if key.startswith("trl.")):
            found.setdefault(key, grpo_default(key.removeprefix("trl.")))
        shared = {key: found[key] for key in found if any(f"{key}.".startswith(f"{name}.") for name in SHARED)}
        plan = each.plan
        settings.append(shared | {f"{name} of a rollout": getattr(plan, name) for name in _OF_THE_PLAN})
    return [*changes(*settings), *differences(before, now)]


def _no_checkpoint(named: Path) -> str:
    steps = ", ".join(str(step_of(path)) for path in reversed(checkpoints_of(named.parent)))
    there = f"{named.parent} has checkpoints at {steps}" if steps else f"{named.parent} has no checkpoint"
    return f"there is no checkpoint {named}; {there}. trl.save_steps says after which steps a run saves."
