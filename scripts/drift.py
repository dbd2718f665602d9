"""How far a run's policy has moved from its start, on prompts all right, all wrong and mixed; the learning tax.

    python scripts/drift.py runs/quickstart

Scores the rollouts of the last batches that the run recorded by its newest checkpoint and by the policy that it started
from, summed over the vocabulary at every position. Runs without a reference model log no drift/kl_* while training;
what the others log knows the sampled tokens alone, and has a heavy tail. Of LoRA runs give --weights an export. With
weights of an earlier step the texts are still those of the last batches, and no tax is told.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rewards import Refusal
from trainer.comparison.drift import drift_table, drifts, last_batches, newest_policy
from trainer.comparison.gradients.sources import policy_of, recipe_of
from trainer.comparison.positive import positive
from trainer.run.config import load_config


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 printed, 2 refused."""
    arguments = parse_arguments(argv)
    run: Path = arguments.run
    try:
        config = load_config(run / "config.yaml")
        batches = last_batches(run, arguments.batches)
        policies = (policy_of(str(arguments.weights or newest_policy(run))), policy_of(config.model.name_or_path))
        gained = None if arguments.weights else _gained(run)  # what other weights gained is not known
        print(drift_table(drifts(batches, *policies, recipe_of(config), gained)))
    except Refusal as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    return 0


def _gained(run: Path) -> tuple[float, float] | None:
    path = run / "summary.json"
    summary = json.loads(path.read_text()) if path.exists() else {}
    before, after = (summary.get(f"accuracy_{when}") for when in ("before", "after"))
    return None if before is None or after is None else (before, after)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("run", type=Path, help="a finished run's directory")
    parser.add_argument("--batches", type=positive(int), default=4, help="rollout batches, the last ones; else 4")
    parser.add_argument("--weights", type=Path, help="folder of the trained policy; else the run's newest checkpoint")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
