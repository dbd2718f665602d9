"""The memory that `evenkeel check` estimates beside the peak of the process that trains.

    python -m scripts.benchmarks.memory FOLDER_OF_A_MODEL           # ten minutes for 135 M parameters

Each run is a process of its own on the CPU: two optimizer steps on arithmetic, full weights and LoRA, at each length.
At temperature 4 nearly every completion runs to its limit, as the estimate supposes, and the reward is the
parity of its characters, so that groups are alive. The peak is the kernel's (`ru_maxrss`).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from scripts.program import run

GIB = 2**30
RUN = "math/tiny_cpu"
VARIANTS = {"full": [], "lora": ["model.lora={r: 16, target_modules: all-linear}"]}
SETTINGS = (
    "rewards=[{verifier: 'scripts.benchmarks.memory:parity'}]",
    "algorithm.prompts_per_rollout=2",
    "algorithm.sequences_per_update=8",
    "trl.num_generations=4",
    "trl.per_device_train_batch_size=4",
    "trl.max_steps=2",
    "trl.temperature=4.0",
    "trl.save_strategy=no",
    "data.test=null",
    "logging.report_to=[]",
)


def parity(completion: str, reference: Any) -> float:
    """1 where the number of characters is even."""
    return float(len(completion) % 2 == 0)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The command line."""
    command.add_argument("model", help="folder of a model")
    command.add_argument("--lengths", type=int, nargs="+", default=[32, 96, 256], help="default 32 96 256")
    command.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), help="default both")
    command.add_argument("settings", nargs="*", metavar="key=value", help="settings of the run that replace ours")


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every run, as a row of a table."""
    print("| weights trained | completion tokens | estimated, GiB | measured, GiB | estimated / measured |")
    print("|---|---|---|---|---|")
    found = []
    for variant in options.variants:
        for length in options.lengths:
            settings = [
                f"model.name_or_path={Path(options.model).absolute()}",
                f"trl.max_completion_length={length}",
                *SETTINGS,
                *VARIANTS[variant],
                *options.settings,
            ]
            estimate, peak = estimated(settings), measured(settings)
            found.append({"variant": variant, "length": length, "estimate": estimate, "peak_bytes": peak})
            whole = estimate["peak_bytes"]
            print(f"| {variant} | {length} | {whole / GIB:.2f} | {peak / GIB:.2f} | {whole / peak:.2f} |", flush=True)
    return found


def estimated(settings: Sequence[str]) -> dict[str, Any]:
    """The estimate for one process: ``peak_bytes`` and ``terms``."""
    printed, _ = _ended(["check", RUN, "--no-code", "--json", *settings])
    return json.loads(printed)["memory_estimate"]["ddp"]


def measured(settings: Sequence[str]) -> int:
    """Peak bytes of a run."""
    with tempfile.TemporaryDirectory() as folder:
        return _ended(["train", RUN, *settings, f"output_dir={folder}/run"])[1]


def _ended(arguments: Sequence[str]) -> tuple[str, int]:
    """What a command printed, and its peak bytes; a `Refusal` where it failed."""
    command = [sys.executable, "-m", "evenkeel", *arguments]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        _, status, usage = os.wait4(process.pid, 0)
        for file in (out, err):
            file.seek(0)
        printed, said = out.read(), err.read()
    if status != 0:
        raise Refusal(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}:\n{said[-3000:]}")
    return printed, usage.ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(run(__doc__, add_arguments, measure))
