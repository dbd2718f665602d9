"""Measures how long transformers takes to generate, in each way that a run's file can ask for, in turn.

    python scripts/benchmark_generation.py configs/quickstart.yaml
    python scripts/benchmark_generation.py configs/quickstart.yaml model.name_or_path=runs/quickstart/checkpoint-25
    python scripts/benchmark_generation.py configs/math/tiny_cpu.yaml --ways trl compact --rounds 8 --rows 256

``faster`` is the median over rounds of how many times the first way's time another one's is, with the least and the
most; ``same`` says whether it gave the first way's tokens in every round.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from rewards import GENERATORS, Refusal, build_verifier, reward_functions
from rewards.references import check_rewards
from trainer.run.generation_benchmark import WAYS, compared_generation
from trainer.run.rewards import Rewards


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 measured, 2 refused."""
    arguments = parse_arguments(argv)
    import torch

    rewards = Rewards(build_verifier, GENERATORS, check_rewards, reward_functions)
    chosen = {"ways": arguments.ways, "rows": arguments.rows, "rounds": arguments.rounds}
    try:
        measured = compared_generation(arguments.config, arguments.overrides, rewards, **chosen)
    except Refusal as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    lengths = [len(ids) for ids in measured[arguments.ways[0]].token_ids]
    print(f"{datetime.now(UTC):%Y-%m-%d}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{len(lengths)} completions of {sum(lengths) / len(lengths):.0f} tokens, the longest of {max(lengths)}")
    print(f"{'way':<22}{'seconds':>9}  faster                 same")
    for way, result in measured.items():
        print(f"{way:<22}{result}")
    return 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("config", help="YAML file with held-out rows")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="dotted settings that replace the file's")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS), help="default: all")
    parser.add_argument("--rows", type=int, default=128, help="completions of a round; default 128")
    parser.add_argument("--rounds", type=int, default=4, help="rounds that count; default 4")
    return parser.parse_intermixed_args(argv)


if __name__ == "__main__":
    sys.exit(main())
