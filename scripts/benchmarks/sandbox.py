"""Measures what a sandboxed program costs, by level of isolation.

Every level takes its turn in every round, on the same cores, so that a busy machine slows all of them: ratios and CPU
time hold where seconds do not. ``subprocess`` is a plain ``python main.py`` with no limits at all, for comparison.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast, get_args

from evenkeel.rewards.isolation.sandbox import Isolation, Sandbox

PROGRAM = "a, b = map(int, input().split())\nprint(a + b)\n"
NUMPY_PROGRAM = "import numpy\na, b = map(int, input().split())\nprint(int(numpy.array([a, b]).sum()))\n"
STDIN, EXPECTED = b"20 22\n", b"42\n"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this benchmark alone is asked."""
    command.add_argument("--cores", default="0,1", help="processors to run on, one program each; default 0,1")
    command.add_argument("--runs", type=int, default=40, help="programs in a turn, one by one and side by side each")
    command.add_argument("--numpy", action="store_true", help="a program that imports numpy")


def plain_subprocess(source: str) -> bytes:
    """The output of a new interpreter."""
    return subprocess.run([sys.executable, "-I", "-c", source], input=STDIN, capture_output=True, check=True).stdout


def one_turn(output: Callable[[], bytes], runs: int, slots: int) -> tuple[list[float], float]:
    """Seconds of each of ``runs`` programs one by one, and of as many side by side."""
    latencies = []
    for _ in range(runs):
        started = time.perf_counter()
        assert output() == EXPECTED
        latencies.append(time.perf_counter() - started)
    started = time.perf_counter()
    with ThreadPoolExecutor(slots) as threads:
        outputs = list(threads.map(lambda _: output(), range(runs)))
    assert outputs == [EXPECTED] * runs
    return latencies, time.perf_counter() - started


def cpu_seconds() -> float:
    """CPU time of this process and of all processes that it, or one of those, has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def cpu_milliseconds(level: str, source: str, runs: int) -> float | None:
    """CPU time of one run, zygote and this side included, start-up not: what a busy machine changes least."""
    if level == "bubblewrap":
        return None  # its inner processes are waited for by nobody here
    spent = []
    for count in (1, 1 + runs):
        before = cpu_seconds()
        if level == "subprocess":
            for _ in range(count):
                plain_subprocess(source)
        else:
            with Sandbox(isolation=cast(Isolation, level)) as sandbox:
                for _ in range(count):
                    sandbox.run(source, stdin=STDIN)
        spent.append(cpu_seconds() - before)
    return (spent[1] - spent[0]) / runs * 1e3


def measure(options: argparse.Namespace) -> dict[str, dict[str, float | None]]:
    """Print one line a level; level → its numbers."""
    cores = {int(core) for core in options.cores.split(",")}
    os.sched_setaffinity(0, cores)
    source = NUMPY_PROGRAM if options.numpy else PROGRAM
    sandboxes = {
        level: Sandbox(isolation=level, slots=len(cores))
        for level in get_args(Isolation)
        if level != "bubblewrap" or shutil.which("bwrap")
    }
    levels: dict[str, Callable[[], bytes]] = {"subprocess": lambda: plain_subprocess(source)}
    for level, sandbox in sandboxes.items():
        sandbox.run("")
        levels[level] = lambda sandbox=sandbox: sandbox.run(source, stdin=STDIN).stdout  # type: ignore[misc]
    latencies: dict[str, list[float]] = {level: [] for level in levels}
    seconds = dict.fromkeys(levels, 0.0)
    for _ in range(options.rounds):
        for level, output in levels.items():
            # A new interpreter is many times slower; a quarter of the runs say as much.
            runs = options.runs // 4 if level == "subprocess" else options.runs
            turn, side_by_side = one_turn(output, runs, len(cores))
            latencies[level] += turn
            seconds[level] += side_by_side / runs
    for sandbox in sandboxes.values():
        sandbox.close()
    print(f"{len(cores)} cores, {'numpy' if options.numpy else 'trivial'} program, {options.rounds} rounds in turn")
    print(f"{'level':18} {'p50 ms':>8} {'p99 ms':>8} {'runs/s':>8} {'x subprocess':>13} {'CPU ms/run':>11}")
    measured: dict[str, dict[str, float | None]] = {}
    for level in levels:
        rate = options.rounds / seconds[level]
        ratio = rate * seconds["subprocess"] / options.rounds
        quantiles = statistics.quantiles(latencies[level], n=100)
        cpu = cpu_milliseconds(level, source, 5 * options.runs)
        p50, p99 = quantiles[49] * 1e3, quantiles[98] * 1e3
        measured[level] = {"p50_ms": p50, "p99_ms": p99, "runs_a_second": rate, "x_subprocess": ratio, "cpu_ms": cpu}
        shown = "-" if cpu is None else f"{cpu:.1f}"
        print(f"{level:18} {p50:8.1f} {p99:8.1f} {rate:8.0f} {ratio:13.1f} {shown:>11}")
    return measured
