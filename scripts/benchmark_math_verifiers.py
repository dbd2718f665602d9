"""Judges labelled pairs of a gold and an answer by our verifier, math-verify and TRL's reward, side by side.

    python scripts/benchmark_math_verifiers.py      # the fresh pairs, which no rule was written from
    python scripts/benchmark_math_verifiers.py --pairs tests/rewards/verifiers/math_answer/learned_pairs.json --errors

Prints a Markdown table of right answers refused and wrong answers paid.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from trl.rewards import accuracy_reward

from rewards.bench.labelled_pairs import comparison_of_graders, labelled_pairs

FRESH = Path(__file__).parents[1] / "tests/rewards/verifiers/math_answer/fresh_pairs.json"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    command.add_argument("--pairs", type=Path, default=FRESH, help="a JSON list of pairs; default the fresh ones")
    command.add_argument("--errors", action="store_true", help="also list each error of our verifier")
    return command


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge, and print the table."""
    options = parser().parse_args(arguments)
    print(comparison_of_graders(labelled_pairs(options.pairs), accuracy_reward, list_errors=options.errors))


if __name__ == "__main__":
    main()
