"""Report on a run or a sweep: the verdict first, then its grounds, as one HTML page and as Markdown with a picture.

    evenkeel report runs/quickstart                        # report.html, report.md, report.svg in the directory
    evenkeel report runs/sweeps/quickstart --output seven_ways.html

Exit status: 0 written, 2 nothing to report on.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from evenkeel.trainer.command import command_line, refused_in_words


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    from evenkeel.trainer.lab.reports.page import print_report

    return print_report(arguments.directory, arguments.output)


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("directory", type=Path, help="of a run, or of a sweep")
    command.add_argument("--output", type=Path, help="the HTML file")
    return command
