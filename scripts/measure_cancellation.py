"""Measure in short runs of a policy that ships what is left of the tokens that a whole group shares.

    python scripts/measure_cancellation.py
    python scripts/measure_cancellation.py configs/knights_knaves/tiny_cpu.yaml --rollouts 5

Prints a Markdown table of cancellation/shared_prefix, the mean over the optimizer steps of a few rollout batches:
advantages × optimizer steps a batch, with groups kept in one step and shuffled. Hardware: 2 CPU cores, 2 GB.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rewards import GENERATORS, Refusal, build_verifier, reward_functions
from rewards.references import check_rewards
from trainer.comparison.cancellation import cancellation_table
from trainer.run.rewards import Rewards


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 printed, 2 refused."""
    arguments = parse_arguments(argv)
    rewards = Rewards(build_verifier, GENERATORS, check_rewards, reward_functions)
    try:
        counts = {"prompts": arguments.prompts, "rollouts": arguments.rollouts}
        for line in cancellation_table(arguments.config, rewards, **counts):
            print(line, flush=True)
    except Refusal as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    return 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("config", nargs="?", type=Path, default=Path("configs/quickstart.yaml"), help="YAML of the run")
    parser.add_argument("--prompts", type=int, default=8, help="in a rollout batch; a multiple of 4")
    parser.add_argument("--rollouts", type=int, default=3, help="rollout batches of every cell")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
