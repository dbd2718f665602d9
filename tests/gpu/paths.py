"""The paths: what each starts, what must be there for it, and by what it is known to have worked."""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.gpu.machine import Machine

STEPS = 4
Facts = dict[str, Any]


class PathError(Exception):
    """A run that ended with status 0 and is not what it should be; the message says in what."""


@dataclass(frozen=True)
class Place:
    """Where the paths of one acceptance run live, and what they train.

    Attributes:
        earlier: name of a path that has passed → its run's directory.
    """

    folder: Path
    model: str | None
    machine: Machine
    earlier: dict[str, Path] = field(default_factory=dict)

    def run(self, name: str) -> Path:
        """The directory of a path's run."""
        return self.folder / name


@dataclass(frozen=True)
class AcceptancePath:
    """One path.

    Attributes:
        what: for the table.
        unknown: what no machine without a GPU can say.
        advice: what to do about each result.
        missing: why it cannot run at this place; empty where it can.
        commands: what is started, one after the other.
        facts: reads what was written; raises `PathError` where that is not what the path promises.
        one_gpu: it sees the first GPU alone, as one process must: with several in sight transformers would share them.
        server: a command that must answer on `SERVER_PORT` before the others start, and ends after them.
    """

    name: str
    what: str
    unknown: str
    advice: str
    missing: Callable[[Place], str]
    commands: Callable[[Place], list[list[str]]]
    facts: Callable[[Place], Facts]
    one_gpu: bool = True
    server: Callable[[Place], list[str]] | None = None


SERVER_PORT = 8791


def training(place: Place, name: str, *settings: str, launch: tuple[str, ...] = (), processes: int = 1) -> list[str]:
    """`evenkeel train` for a few steps of the quickstart, on the GPU where there is one."""
    cuda = bool(place.machine.gpus)
    overrides = [
        f"output_dir={place.run(name)}",
        f"num_processes={processes}",
        "algorithm.prompts_per_rollout=4",
        "algorithm.sequences_per_update=32",
        f"trl.per_device_train_batch_size={32 // processes}",
        f"trl.max_steps={STEPS}",
        f"trl.save_steps={STEPS // 2}",
        "trl.max_completion_length=32",
        "data.train.generator.test=16",
        "data.test.generator.test=16",
        "evaluation.before=false",
        "logging.report_to=none",
        f"trl.use_cpu={str(not cuda).lower()}",
        f"trl.bf16={str(cuda and place.machine.bf16).lower()}",
        *([] if place.model is None else [f"model.name_or_path={place.model}"]),
        *settings,
    ]
    launcher = [sys.executable, "-m", "evenkeel", "launch", *launch] if launch else [sys.executable]
    return [*launcher, "-m", "evenkeel", "train", "configs/quickstart.yaml", *overrides]


def trained(place: Place, name: str, *, steps: int = STEPS) -> Facts:
    """What a run's metrics say; a run that logged a NaN, or ended early, has failed."""
    run = place.run(name)
    entries = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [entry["loss"] for entry in entries if "loss" in entry]
    norms = [entry["grad_norm"] for entry in entries if "grad_norm" in entry]
    if len(losses) != steps:
        raise PathError(f"{len(losses)} optimizer steps were logged, not {steps}")
    if not all(map(math.isfinite, [*losses, *norms])):
        raise PathError(f"losses {losses}, gradient norms {norms}")
    if not any(norms):
        raise PathError("every gradient was 0")
    seconds = [entry["step_time"] for entry in entries if "step_time" in entry]
    facts: Facts = {"steps": steps}
    if seconds:
        facts["seconds a step"] = round(min(seconds), 2)
    gaps = [entry["vllm/agreement_max"] for entry in entries if "vllm/agreement_max" in entry]
    if gaps:
        facts["vllm/agreement_max"] = max(gaps)
    return facts


def needs(*packages: str, gpus: int = 0) -> Callable[[Place], str]:
    """``missing`` of a path that takes packages and GPUs."""

    def missing(place: Place) -> str:
        if len(place.machine.gpus) < gpus:
            return f"takes {gpus} GPU{'s' if gpus > 1 else ''}, and there are {len(place.machine.gpus)}"
        absent = [name for name in packages if name not in place.machine.packages]
        return f"not installed: {', '.join(absent)}" if absent else ""

    return missing


def sharded(place: Place, name: str, file: str, *, cpu: tuple[str, ...] = ()) -> list[str]:
    """A training under one of configs/accelerate, on as many processes as the path takes here."""
    processes = place.machine.processes()
    on_gpu = bool(place.machine.gpus)
    precision = "bf16" if on_gpu and place.machine.bf16 else "no"
    options = ("--num_processes", str(processes), "--mixed_precision", precision)
    launch = ("--config_file", f"configs/accelerate/{file}", *options)
    return training(place, name, *(() if on_gpu else cpu), launch=launch, processes=processes)
