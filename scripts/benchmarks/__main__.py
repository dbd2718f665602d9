"""Measures speed and errors; what is compared takes turns in one run.

    python -m scripts.benchmarks update                       # stock TRL, planned micro-batches, strategies: 5 minutes
    python -m scripts.benchmarks update --size gpu --device cuda     # half a billion random weights in bfloat16
    python -m scripts.benchmarks math_verifiers               # ours, math-verify and TRL's reward on labelled pairs

Ratios are medians over rounds, with the least and the most in brackets: on a machine that others use too they hold
where seconds do not. Exit status: 0 measured, 2 refused.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from scripts.one_of import run_one_of

PROGRAMS = {
    "update": "the update phase: stock TRL, planned micro-batches, strategies",
    "math_verifiers": "verifiers of mathematics: right answers refused, wrong ones paid",
}


def shared(name: str, command: argparse.ArgumentParser) -> None:
    """What benchmarks are asked alike."""
    if name != "math_verifiers":  # which gives the same in every round
        command.add_argument("--rounds", type=int, default=4, help="default %(default)s")
    command.add_argument("--json", type=Path, help="also write everything measured to this file")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["update"]:  # whose models are made here
        os.environ.update(TRL_EXPERIMENTAL_SILENCE="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs", flush=True)
    return run_one_of("scripts.benchmarks", __doc__ or "", PROGRAMS, given, shared)


if __name__ == "__main__":
    sys.exit(main())
