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
from collections.abc import Sequence

from rewards import Refusal
from trainer.run.dataset_check import check_dataset


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


if __name__ == "__main__":
    sys.exit(main())
