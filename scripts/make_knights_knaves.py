"""Writes knights-and-knaves puzzles: a training and a test set that share no puzzle, the same for the same arguments.

    python scripts/make_knights_knaves.py data/kk --people 3 4 5 --train 900 --test 100

writes data/kk/train.parquet (2,700 rows) and data/kk/test.parquet (300 rows) in about four seconds, with the keys of
the published sets: quiz, names, solution, solution_text, solution_text_format, cot_head, cot_repeat_steps, cot_foot,
statements, index. The verifier ``knights_knaves`` takes such a row as its reference.
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import pyarrow
import pyarrow.parquet

from evenkeel.rewards.generators.knights_knaves import generate_split, row
from evenkeel.rewards.verifiers.knights_knaves.language import NAMES


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    command.add_argument("folder", type=Path, help="where train and test are written; files there are replaced")
    command.add_argument("--people", type=int, nargs="+", default=[3], metavar="N", help="2 to 8; default 3")
    command.add_argument("--train", type=int, default=900, help="for each number of people; 0 writes none; default 900")
    command.add_argument("--test", type=int, default=100, help="for each number of people; 0 writes none; default 100")
    command.add_argument("--seed", type=int, default=0, help="default 0")
    command.add_argument("--format", choices=("parquet", "jsonl"), default="parquet", help="default parquet")
    command.add_argument(
        "--style", choices=("published", "compact"), default="published", help="varied prose, or a few dozen words"
    )
    command.add_argument(
        "--names", nargs="+", default=list(NAMES), metavar="NAME", help="the pool; default fifty names"
    )
    command.add_argument("--depth", type=int, default=1, help="connectives inside one another; default 1")
    command.add_argument("--width", type=int, default=2, help="most claims one 'and' or 'or' joins; default 2")
    command.add_argument("--namings", type=int, default=1, help="puzzles made of the same claims; default 1")
    return command


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the two files that ``arguments`` ask for, or say what is wrong with them."""
    options = parser().parse_args(arguments)
    try:
        split = generate_split(
            options.people,
            options.train,
            options.test,
            seed=options.seed,
            names=options.names,
            depth=options.depth,
            width=options.width,
            style=options.style,
            namings=options.namings,
        )
        options.folder.mkdir(parents=True, exist_ok=True)
        for name, puzzles in split._asdict().items():
            if not puzzles:
                continue
            path = options.folder / f"{name}.{options.format}"
            write([row(puzzle, index) for index, puzzle in enumerate(puzzles)], path)
            print(f"{path}: {len(puzzles)} puzzles")
    except ValueError as error:
        sys.exit(f"make_knights_knaves: {error}")
    except OSError as error:
        sys.exit(f"make_knights_knaves: {error.filename} cannot be written ({error.strerror}); name another folder")


def write(rows: list[dict[str, Any]], path: Path) -> None:
    """Write ``rows`` as parquet or, by the suffix, as one JSON object a line."""
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
