"""Measures the update phase: stock TRL against planned micro-batches and strategies, in turn in one process.

    python scripts/benchmark.py                             # two CPU cores, about five minutes
    python scripts/benchmark.py --rounds 10 --json speed.json
    python scripts/benchmark.py --size gpu --device cuda    # half a billion random weights in bfloat16
    python scripts/benchmark.py --run configs/quickstart.yaml --rounds 2   # whole runs, with and without `speed`

Ratios are medians over rounds, with the least and the most in brackets: on a machine that others use too they hold
where seconds do not. ``floor`` is the share of the computed tokens that no exact update can do without.
"""

import argparse
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    command.add_argument("--rounds", type=int, default=4, help="turns of each variant that count; default 4")
    command.add_argument("--size", choices=["cpu", "gpu"], default="cpu", help="model and rollout batch; default cpu")
    command.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="default cpu")
    command.add_argument("--run", metavar="FILE", help="measure this run file from start to end, not the update alone")
    command.add_argument("--json", type=Path, help="also write everything measured to this file")
    return command


def shown_ratio(ratio: Mapping[str, float]) -> str:
    """The median, with the least and the most."""
    return f"{ratio['median']:.2f} [{ratio['least']:.2f}, {ratio['most']:.2f}]"


def table(result: dict[str, Any]) -> str:
    """The measurements of one kind of rollout batch."""
    title = "half of the groups dead" if result["half_dead"] else "no dead groups"
    lines = [
        f"{title}: {result['overhead']:.0%} of stock's update is not computation",
        f"{'variant':<24}{'seconds':>9}{'tokens':>10}{'floor':>8}   {'× faster than stock':<24}× faster than planned",
    ]
    for name, measured in result["variants"].items():
        seconds = sorted(measured["seconds"])[len(measured["seconds"]) // 2]
        ratios = [shown_ratio(measured[name]) for name in ("faster_than_stock", "faster_than_planned")]
        share = f"{measured['share_of_floor']:.0%}"
        lines.append(f"{name:<24}{seconds:>9.2f}{measured['tokens']:>10,}{share:>8}   {ratios[0]:<24}{ratios[1]}")
        if measured["peak_bytes"]:
            lines[-1] += f"   {measured['peak_bytes'] / 2**30:.1f} GiB"
    lines += [f"{name} fell back to TRL's micro-batches" for name in result["fell_back"]]
    return "\n".join(lines)


def run_table(result: dict[str, Any]) -> str:
    """The wall times of whole runs."""
    lines = [f"{'variant':<26}{'seconds':>9}   {'× faster than trl':<24}held-out accuracy"]
    for name, measured in result.items():
        shown = shown_ratio(measured["faster_than_first"])
        accuracy = ", ".join("none" if value is None else f"{value:.3f}" for value in measured["accuracy"])
        lines.append(f"{name:<26}{statistics.median(measured['seconds']):>9.0f}   {shown:<24}{accuracy}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    chosen = parser().parse_args(arguments)
    if chosen.run is not None:
        measure_runs(chosen)
        return
    os.environ.update(TRL_EXPERIMENTAL_SILENCE="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    import torch

    from trainer.step.update_benchmark import SIZES, compared_updates

    name = torch.cuda.get_device_name() if chosen.device == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"{datetime.now(UTC):%Y-%m-%d}, {name}, torch {torch.__version__}", flush=True)
    results = []
    for half_dead in (True, False):
        size = SIZES[chosen.size]
        results.append(compared_updates(size, half_dead=half_dead, rounds=chosen.rounds, device=chosen.device))
        print(table(results[-1]), end="\n\n", flush=True)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({"device": name, "results": results}, indent=2) + "\n")


def measure_runs(chosen: argparse.Namespace) -> None:
    """Whole runs by TRL alone, with TRL's micro-batches, and as the file says."""
    from trainer.run.wall_time import compared_runs

    variants = {
        "trl": ["speed.microbatches=trl", "speed.generation=trl"],
        "microbatches-trl": ["speed.microbatches=trl"],
        "as-the-file-says": [],
    }
    train = Path(__file__).with_name("train.py")
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {chosen.run}", flush=True)
    result = compared_runs(train, chosen.run, variants, rounds=chosen.rounds)
    print(run_table(result))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
