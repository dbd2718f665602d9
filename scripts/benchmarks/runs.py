"""How long whole runs take under different settings: each in a process of its own, in turn, in one measurement."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.record.run_record import RunRecord
from scripts.benchmarks.rounds import in_turn, round_ratios, shown_ratio

VARIANTS = {
    "trl": "planned,compact",
    "microbatches-trl": "planned",
    "as-the-file-says": "",
}
"""Name → EVENKEEL_OFF."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this benchmark alone is asked."""
    command.add_argument("config", help="YAML file of a run")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The wall times, with a table."""
    result = compared_runs(options.config, VARIANTS, rounds=options.rounds)
    print(f"{'variant':<26}{'seconds':>9}   {'× faster than trl':<24}held-out accuracy")
    for name, measured in result.items():
        shown = shown_ratio(measured["faster_than_first"])
        accuracy = ", ".join("none" if value is None else f"{value:.3f}" for value in measured["accuracy"])
        print(f"{name:<26}{statistics.median(measured['seconds']):>9.0f}   {shown:<24}{accuracy}")
    return result


def compared_runs(
    config: str,
    variants: Mapping[str, str],
    *,
    rounds: int,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Run ``config`` under every variant, ``rounds`` times, from start of the process to its end.

    Args:
        variants: name → EVENKEEL_OFF; the first is what the others are compared with.
        rounds: turns of each variant; the order changes from turn to turn.

    Returns:
        name → ``seconds`` of every round, ``faster_than_first`` (the ratio within a round: median, least, most) and
        ``accuracy``, the held-out accuracy after training in every round, ``None`` where the run evaluates none.

    Raises:
        Refusal: a run failed; with the end of what it printed.
    """
    names = list(variants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    accuracy: dict[str, list[float | None]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for name in in_turn(names, number):
                run = Path(folder) / f"{name}-{number}"
                command = [sys.executable, "-m", "evenkeel", "train", config, f"output_dir={run}"]
                started = time.perf_counter()
                variables = {**os.environ, **_OFFLINE, "EVENKEEL_OFF": variants[name]}
                ended = subprocess.run(command, capture_output=True, text=True, env=variables)
                seconds[name].append(time.perf_counter() - started)
                if ended.returncode != 0:
                    raise Refusal(f"{' '.join(command)} ended with status {ended.returncode}:\n{_end(ended)}")
                accuracy[name].append(_accuracy(run))
                say(f"  {name}, round {number + 1} of {rounds}: {seconds[name][-1]:.0f} s")
    return {
        name: {
            "seconds": seconds[name],
            "accuracy": accuracy[name],
            "faster_than_first": round_ratios(seconds[names[0]], seconds[name]),
        }
        for name in names
    }


_OFFLINE = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}


def _accuracy(run: Path) -> float | None:
    value: float | None = RunRecord(run).summary["accuracy_after"]
    return value


def _end(ended: subprocess.CompletedProcess[str]) -> str:
    return (ended.stderr or ended.stdout)[-2000:]
