"""Are the data of a run usable, before anything is paid for? Loads no model.

    python scripts/check_dataset.py configs/quickstart.yaml
    python scripts/check_dataset.py configs/quickstart.yaml data.train.max_rows=100

Every reference is judged with an empty completion, and with its own gold answer where it holds one, by each verifier
that will judge its rows. Exit status: 0 all are usable, 1 some are not, which are listed, 2 nothing could be loaded.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rewards import GENERATORS, VerifierError, build_verifier
from rewards.references import unusable_references
from trainer.run.config import ConfigError, load_config
from trainer.run.data import DataError, load_mixture


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status, see above."""
    arguments = parse_arguments(argv)
    try:
        unusable = check(arguments.config, arguments.overrides, arguments.list)
    except (ConfigError, DataError, VerifierError) as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    return 1 if unusable else 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("config", help="YAML file of a run")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="dotted settings that replace the file's")
    parser.add_argument("--list", type=int, default=20, metavar="N", help="unusable rows listed; default 20")
    return parser.parse_intermixed_args(argv)


def check(path: str, overrides: Sequence[str], most_listed: int) -> int:
    """Print what each verifier makes of each part's references; the number of unusable ones."""
    config = load_config(path, overrides)
    verifiers = {reward.label: (build_verifier(reward.verifier), reward.task) for reward in config.rewards}
    held_out = {f"test.{name}": [source] for name, source in config.data.test_sources.items()}
    count = 0
    for part, sources in {"train": [*config.data.train_sources.values()], **held_out}.items():
        rows = load_mixture(sources, generators=GENERATORS, system_prompt=None, base_dir=Path(path).resolve().parent)
        tasks = rows["task"] if "task" in rows.column_names else [None] * len(rows)
        for label, (verifier, wanted) in verifiers.items():
            mine = [row for row, task in enumerate(tasks) if wanted in (None, task)]
            if not mine:
                continue
            references = rows.select(mine)["reference"][:]
            started = time.perf_counter()
            problems = unusable_references(verifier, references)
            seconds = time.perf_counter() - started
            gold = sum(verifier.gold_completion(reference) is not None for reference in references)
            print(f"data.{part}, {label}: {len(mine)} rows, {gold} with a gold answer, {seconds:.1f} s", end=": ")
            print(f"{len(problems)} unusable" if problems else "all usable")
            for place, problem in list(problems.items())[:most_listed]:
                print(f"  row {mine[place]}: {problem}")
            count += len(problems)
    return count


if __name__ == "__main__":
    sys.exit(main())
