"""How long whole runs take as TRL computes and as their file says, in turn.

    python -m scripts.benchmarks.runs configs/quickstart.yaml --rounds 2

Each run is a process of its own. Ratios are medians over rounds, with the least and the most: of wall time, which other
programs on the machine disturb, and of processor time.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evenkeel.errors import Refusal
from evenkeel.trainer.run.record.run_record import RunRecord
from evenkeel.trainer.step.choices import SWITCHES
from scripts.benchmarks.rounds import in_turn, round_ratios, shown_ratio
from scripts.program import run

VARIANTS = {"trl": ",".join(SWITCHES), "as the file says": ""}
"""Name → EVENKEEL_OFF, the options of `Speed` that TRL's own way replaces."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The command line."""
    command.add_argument("config", help="YAML file of a run")
    command.add_argument("--rounds", type=int, default=2, help="default %(default)s")


def measure(options: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Wall time, processor time and held-out accuracy of every round by variant, with a table."""
    found: dict[str, dict[str, list[float]]] = {
        name: {"wall": [], "processor": [], "accuracy": []} for name in VARIANTS
    }
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for name in in_turn(list(VARIANTS), number):
                there = Path(folder) / f"{number}-{name.replace(' ', '_')}"
                seconds, used = timed_run(options.config, there, VARIANTS[name])
                found[name]["wall"].append(seconds)
                found[name]["processor"].append(used)
                found[name]["accuracy"].append(RunRecord(there).summary["accuracy_after"])
                print(f"  {name}, round {number + 1}: {seconds:.0f} s, {used:.0f} s of processor time", flush=True)
    print(f"{'':<18}{'seconds':>8}   {'× as fast':<20}{'processor time':<20}held-out accuracy")
    for name, measured in found.items():
        ratios = [shown_ratio(round_ratios(found["trl"][each], measured[each])) for each in ("wall", "processor")]
        ends = ", ".join(f"{value:.3f}" for value in measured["accuracy"])
        print(f"{name:<18}{statistics.median(measured['wall']):>8.0f}   {ratios[0]:<20}{ratios[1]:<20}{ends}")
    return found


def timed_run(config: str, there: Path, off: str) -> tuple[float, float]:
    """Wall and processor seconds of a run from the start of its process to its end.

    Raises:
        Refusal: the run failed, with the end of what it printed.
    """
    command = [sys.executable, "-m", "evenkeel", "train", config, f"output_dir={there}"]
    variables = {**os.environ, "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "EVENKEEL_OFF": off}
    started, used = time.perf_counter(), processor_seconds()
    ended = subprocess.run(command, capture_output=True, text=True, env=variables)
    if ended.returncode != 0:
        said = ended.stdout[-500:] + ended.stderr[-2000:]
        raise Refusal(f"{' '.join(command)} ended with status {ended.returncode}:\n{said}")
    return time.perf_counter() - started, processor_seconds() - used


def processor_seconds() -> float:
    """Of all child processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


if __name__ == "__main__":
    sys.exit(run(__doc__, add_arguments, measure))
