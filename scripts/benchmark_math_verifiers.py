"""Judges labelled pairs of a gold and an answer by our verifier, math-verify and TRL's reward, side by side.

    python scripts/benchmark_math_verifiers.py      # each file of fresh pairs, which no rule was written from
    python scripts/benchmark_math_verifiers.py --pairs tests/rewards/verifiers/math_answer/learned_pairs.json --errors

Prints for each file a Markdown table of right answers refused and wrong answers paid, and ours for each class.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from trl.rewards import accuracy_reward

from rewards.bench.labelled_pairs import comparison_of_graders, labelled_pairs

FRESH = sorted((Path(__file__).parents[1] / "tests/rewards/verifiers/math_answer").glob("fresh*_pairs.json"))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    command.add_argument("--pairs", type=Path, nargs="+", default=FRESH, help="JSON lists of pairs; default the fresh")
    command.add_argument("--errors", action="store_true", help="also list each error of our verifier")
    return command


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge, and print the table."""
    options = parser().parse_args(arguments)
    for file in options.pairs:
        print(f"\n{file.name}\n")
        print(comparison_of_graders(labelled_pairs(file), accuracy_reward, list_errors=options.errors))


if __name__ == "__main__":
    main()
