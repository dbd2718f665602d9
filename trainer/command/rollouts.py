"""One page to read a run's training rollouts on: offline and self-contained.

    evenkeel rollouts runs/quickstart                              # rollouts.html in the run's directory
    evenkeel rollouts runs/quickstart --steps 10:20 --to read.html

The run records rollouts by logging.rollouts. Counts are of all that are recorded; up to --most of them can be read.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from evenkeel.trainer.command import command_line, positive, refused_in_words
from evenkeel.trainer.lab.rollouts import ROLLOUTS


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 written, 2 nothing to read."""
    arguments = parser().parse_args(argv)
    from evenkeel.trainer.lab.rollouts.page import write_page
    from evenkeel.trainer.run.record.rollouts import RecordedRollouts

    page, contents = write_page(RecordedRollouts(arguments.run, *arguments.steps), arguments.to, arguments.most)
    print(f"{contents.rollouts:,} rollouts recorded, {len(contents.groups)} groups to read\n{page}")
    return 0


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("run", type=Path, help="directory of the run")
    command.add_argument("--to", type=Path, help="the HTML file")
    command.add_argument(
        "--steps", type=_steps, default=(None, None), metavar="FIRST:LAST", help="only these optimizer steps, from 1"
    )
    command.add_argument(
        "--most", type=positive(int), default=ROLLOUTS, help=f"most rollouts to read; default: {ROLLOUTS}"
    )
    return command


def _steps(text: str) -> tuple[int | None, int | None]:
    ends = text.split(":")
    if len(ends) != 2 or not all(end.isdigit() or not end for end in ends):
        raise argparse.ArgumentTypeError(f"{text!r} is not FIRST:LAST; write 40:60, 40: or :60")
    first, last = (int(end) if end else None for end in ends)
    return first, last
