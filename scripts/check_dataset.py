"""Are the data of a run usable, before anything is paid for? Loads no model.

    python scripts/check_dataset.py configs/quickstart.yaml
    python scripts/check_dataset.py configs/quickstart.yaml data.train.max_rows=100

Every reference is judged with an empty completion, and with its own gold answer and a plain wrong one where it holds
one, by each verifier that will judge its rows; what training would warn of is listed too.
Exit status: 0 all are usable, 1 some are not, which are listed, 2 nothing could be loaded.
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import argparse
import sys
import time
from collections.abc import Sequence

from evenkeel.errors import Refusal
from evenkeel.rewards.references import tried_references
from evenkeel.trainer.run.experiment import Experiment


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status, see above."""
    arguments = parse_arguments(argv)
    try:
        unusable = check_dataset(arguments.config, arguments.overrides, arguments.list)
    except Refusal as refusal:
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


def check_dataset(path: str, overrides: Sequence[str], most_listed: int) -> int:
    """Print what each verifier makes of each part's references, and says of them; the number of unusable ones."""
    experiment = Experiment.of_file(path, overrides)
    data, wanted = experiment.config.data, experiment.config.reward_tasks
    verifiers = experiment.verifiers
    held_out = {f"test.{name}": [source] for name, source in data.test_sources.items()}
    count = 0
    for part, sources in {"train": [*data.train_sources.values()], **held_out}.items():
        rows = experiment.loaded(sources, system_prompt=None)
        tasks = rows["task"] if "task" in rows.column_names else [None] * len(rows)
        for label, verifier in verifiers.items():
            mine = [row for row, task in enumerate(tasks) if wanted[label] in (None, task)]
            if not mine:
                continue
            references = rows.select(mine)["reference"][:]
            started = time.perf_counter()
            problems, remarks = tried_references(verifier, references, f"data.{part}, {label}")
            seconds = time.perf_counter() - started
            gold = sum(verifier.gold_completion(reference) is not None for reference in references)
            print(f"data.{part}, {label}: {len(mine)} rows, {gold} with a gold answer, {seconds:.1f} s", end=": ")
            print(f"{len(problems)} unusable" if problems else "all usable")
            for place, problem in list(problems.items())[:most_listed]:
                print(f"  row {mine[place]}: {problem}")
            if remarks:
                print(f"  usable, but to be looked at: {len(remarks)} rows")
            for place, remark in list(remarks.items())[:most_listed]:
                print(f"  row {mine[place]}: {remark}")
            count += len(problems)
    return count


if __name__ == "__main__":
    sys.exit(main())
