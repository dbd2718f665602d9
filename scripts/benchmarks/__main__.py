"""Measures speed and errors; what is compared takes turns in one run.

    python -m scripts.benchmarks update                       # stock TRL, planned micro-batches, strategies: 5 minutes
    python -m scripts.benchmarks update --size gpu --device cuda     # half a billion random weights in bfloat16
    python -m scripts.benchmarks shared_prompts               # prompts computed once for the rows that share them
    python -m scripts.benchmarks step --rounds 2              # waits for engine and verifier, our own time: 20 minutes
    python -m scripts.benchmarks overlap                      # generation beside training, and before it: 2 minutes
    python -m scripts.benchmarks collectives                  # weight syncs and collectives on two processes: 2 minutes
    python -m scripts.benchmarks runs configs/quickstart.yaml --rounds 2   # whole runs, with and without `speed`
    python -m scripts.benchmarks generation configs/quickstart.yaml model.name_or_path=runs/quickstart/checkpoint-25
    python -m scripts.benchmarks sandbox --numpy --cores 0,1 --rounds 20   # what a sandboxed program costs
    python -m scripts.benchmarks noise                        # rounding of log-probabilities, every strategy: 3 minutes
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
    "shared_prompts": "prompts computed once for the rows that share them, where it pays and where not",
    "step": "the whole step: waiting for engine and verifier, and what is ours beyond stock TRL",
    "overlap": "generation beside training, with a server that takes its time",
    "collectives": "weight syncs and collectives of a rollout batch on two processes, by place",
    "runs": "a run file from start to end: by TRL alone, with TRL's micro-batches, as it says",
    "generation": "how long transformers takes to generate, in each way that a run file can ask for",
    "sandbox": "what a sandboxed program costs, by level of isolation",
    "noise": "what rounding of log-probabilities does to each strategy's update",
    "math_verifiers": "verifiers of mathematics: right answers refused, wrong ones paid",
}


def shared(name: str, command: argparse.ArgumentParser) -> None:
    """What benchmarks are asked alike."""
    if name not in ("math_verifiers", "collectives"):  # which give the same in every round
        command.add_argument("--rounds", type=int, default=10 if name == "sandbox" else 4, help="default %(default)s")
    command.add_argument("--json", type=Path, help="also write everything measured to this file")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] in (["update"], ["step"], ["overlap"], ["collectives"]):  # whose models are made here
        os.environ.update(TRL_EXPERIMENTAL_SILENCE="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs", flush=True)
    return run_one_of("scripts.benchmarks", __doc__ or "", PROGRAMS, given, shared)


if __name__ == "__main__":
    sys.exit(main())
