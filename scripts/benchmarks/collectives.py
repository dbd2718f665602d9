"""What a rollout batch says between two processes, and where their hosts wait for the device, counted.

    python -m scripts.benchmarks.collectives --json scripts/collectives.json    # then: python -m scripts.scale

The two ranks train the countdown policy on the stand-in device (docs/devices.md), whose process group is as strict as
NCCL's: several optimizer steps a rollout batch, planned micro-batches, a KL term, a log line a step; the first setting
also as stock TRL does. Counted are the collectives of the second rollout batch on the first rank, with the bytes that
it hands in; gathering Python objects takes several. Gradients and their comparison between cuts are left out.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from scripts.program import run

ROOT = Path(__file__).parents[2]
SETTINGS = ((2, 2), (4, 2), (4, 4), (3, 3))
"""Optimizer steps of a rollout batch, and micro-batches of a step; the last one is compared with the others."""
WAIT, GRADIENTS = "host wait", "gradients"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Nothing more is asked."""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Counts by place, bytes and terms, with a table."""
    with tempfile.TemporaryDirectory() as folder:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
        command = [*launcher, "-m", "scripts.benchmarks.collectives", "--rank", folder]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if ended.returncode != 0:
            raise Refusal(f"{' '.join(command)} ended with status {ended.returncode}:\n{ended.stderr[-3000:]}")
        found: dict[str, Any] = json.loads((Path(folder) / "counts.json").read_text())
    for row in (found["stock"], *found["counted"]):
        print(f"{row['steps']} steps of {row['microbatches']} micro-batches: {totals(row)}")
    return found


def totals(row: Mapping[str, Any]) -> dict[str, int]:
    """Collectives, host waits and bytes of a counted rollout batch, without the gradients."""
    waits = sum(number for place, number in row["counts"].items() if place.endswith(WAIT))
    collectives = sum(row["counts"].values()) - waits
    return {"collectives": collectives, "host waits": waits, "bytes": sum(row["bytes"].values())}


def place() -> str:
    """The code that asks: ``file:function`` of ours, or ``package/file:function`` of TRL or transformers."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        path = Path(frame.f_code.co_filename)
        function = frame.f_code.co_qualname.partition(".<locals>")[0].rpartition(".")[2]
        if path.is_relative_to(ROOT / "trainer"):
            return f"{path.name}:{function}"
        package, _, rest = str(path).rpartition("/site-packages/")[2].partition("/")
        if package in ("trl", "transformers"):
            return f"{package}/{Path(rest).name}:{function}"
    return GRADIENTS  # the backward pass's thread


def _count(folder: Path) -> None:
    """On one rank of two."""
    _, collectives, device = (import_module(f"tests.standin.{name}") for name in ("plugin", "collectives", "device"))
    collectives.install()  # before accelerate is imported
    from transformers import TrainerCallback

    cases, prompts = import_module("tests.standin.cases").CASES, import_module("tests.trainer.training").PROMPTS
    counts, sent, found = Counter[str](), Counter[str](), []
    plain = collectives.LikeNCCL._run

    def counted(self: Any, name: str, inputs: Any, outputs: Any, collective: Any) -> Any:
        before = counts.copy()
        result = plain(self, name, inputs, outputs, collective)  # whose copies to gloo are no waits of NCCL's
        counts.clear()
        counts.update(before)
        if (asks := place()) != GRADIENTS:
            asks = f"{asks} {name.replace('_', '')}"
            counts[asks] += 1
            sent[asks] += sum(each.numel() * each.element_size() for each in inputs)
        return result

    def waited(_: str) -> None:
        if (asks := place()) != GRADIENTS:
            counts[f"{asks} {WAIT}"] += 1

    collectives.LikeNCCL._run = counted
    device.install().on_host_wait(waited)

    class SecondBatch(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == args.max_steps // 3:
                counts.clear()
                sent.clear()
            if state.global_step == 2 * args.max_steps // 3:
                self.kept = {"counts": dict(counts), "bytes": dict(sent)}

    planned = replace(cases["planned"], strategies={"microbatches": "planned", "verify_steps": 0})
    for number, (steps, microbatches) in enumerate((SETTINGS[0], *SETTINGS)):
        second = SecondBatch()
        (planned if number else cases["stock"]).run(
            folder / str(number),
            rows=4 * prompts,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=microbatches,
            steps_per_generation=steps * microbatches,
            max_steps=3 * steps,
            beta=0.001,
            callbacks=[second],
        )
        found.append({"steps": steps, "microbatches": microbatches, **second.kept})
    if int(os.environ["RANK"]) == 0:
        (folder / "counts.json").write_text(json.dumps({"stock": found[0], "counted": found[1:]}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        _count(Path(sys.argv[2]))
    else:
        sys.exit(run(__doc__, add_arguments, measure))
