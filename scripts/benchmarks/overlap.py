"""Generation beside training: wall time of the same training overlapped and not.

The engine of the benchmark ``step`` answers TRL's own vLLM client at a stated speed, from another thread of this
process. Each case trains six rollout batches of a random policy with ``staleness: 1``, one optimizer step each, in turn
with the other. How long generation takes is a multiple of what the rest of a step took before, without any.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evenkeel.trainer.step.options import Speed
from scripts.benchmarks.rounds import in_turn, round_ratios, shown_ratio
from scripts.benchmarks.step import SIZES, Engine, Verifier, trainer_of
from scripts.benchmarks.update import Size

BATCHES = 6
CASES = {"before": Speed(staleness=1), "beside": Speed(staleness=1, overlap_generation=True)}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this benchmark alone is asked."""
    command.add_argument("--size", choices=list(SIZES), default="1m", help="model and rollout batch; default 1m")
    command.add_argument(
        "--generation", type=float, nargs="+", default=[0.5, 1.0, 2.0], help="× the rest of a step; default %(default)s"
    )


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """A table of ratios."""
    found = overlaps(SIZES[options.size], options.generation, rounds=options.rounds)
    print("\n".join(table(found)))
    return {"cases": [{"generation": share, **seconds} for share, seconds in found.items()]}


def overlaps(
    size: Size, shares: Sequence[float], *, rounds: int, say: Callable[[str], None] = print
) -> dict[float, dict[str, list[float]]]:
    """Share → case → seconds of each round."""
    engine, verifier = Engine(size), Verifier()
    found: dict[float, dict[str, list[float]]] = {share: {case: [] for case in CASES} for share in shares}
    with tempfile.TemporaryDirectory() as folder, engine.listening() as address, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = {"max_steps": BATCHES}
        trainers = {
            case: trainer_of(Path(folder), case, size, verifier, address, speed, more) for case, speed in CASES.items()
        }
        seconds_of(trainers["before"])  # the first one warms up
        rest = seconds_of(trainers["before"]) / BATCHES
        for number in range(rounds):
            for share in shares:
                engine.tokens_per_second = int(engine.rollouts.lengths().sum()) / (share * rest)
                for case in in_turn([*CASES], number):
                    found[share][case].append(seconds_of(trainers[case]))
            say(f"  round {number + 1} of {rounds}")
    return found


def seconds_of(trainer: Any) -> float:
    """Of one training."""
    started = time.perf_counter()
    trainer.train()
    return time.perf_counter() - started


def table(found: dict[float, dict[str, list[float]]]) -> Iterator[str]:
    """How many times faster, and what could be: the longer of the two in place of both, but at the ends."""
    yield "\n| generation, × the rest of a step | times faster beside training | at most |\n|---|---|---|"
    for share, seconds in found.items():
        most = BATCHES * (1 + share) / (share + (BATCHES - 1) * max(1, share) + 1)
        yield f"| {share:g} | {shown_ratio(round_ratios(seconds['before'], seconds['beside']))} | {most:.2f} |"
