"""Measure in short runs how much less paired differences of two variants vary under common random numbers.

    python scripts/measure_common_random_numbers.py configs/quickstart.yaml
    python scripts/measure_common_random_numbers.py configs/quickstart.yaml --seeds 8 --variant algorithm.advantage=rloo

Prints a Markdown table: the standard deviation over seeds of the difference between the run file and the variant, with
and without, in every rollout batch from the second on. Hardware: 2 CPU cores, 2 GB; 8 seeds
are 32 short runs.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rewards import GENERATORS, Refusal, build_verifier, reward_functions
from rewards.references import check_rewards
from trainer.comparison.common_noise import noise_table
from trainer.run.rewards import Rewards

VARIANT = ["algorithm.token_weight={name: adv_reweight, alpha: 0.2}"]


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 printed, 2 refused."""
    arguments = parse_arguments(argv)
    rewards = Rewards(build_verifier, GENERATORS, check_rewards, reward_functions)
    counts = {"seeds": arguments.seeds, "rollouts": arguments.rollouts}
    try:
        told = partial(print, file=sys.stderr, flush=True)
        for line in noise_table(arguments.config, rewards, arguments.variant or VARIANT, **counts, told=told):
            print(line)
    except Refusal as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    return 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("config", nargs="?", type=Path, default=Path("configs/quickstart.yaml"), help="YAML of the run")
    parser.add_argument("--variant", action="append", metavar="key=value", help=f"what differs; else {VARIANT[0]}")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--rollouts", type=int, default=3, help="rollout batches of every run")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
