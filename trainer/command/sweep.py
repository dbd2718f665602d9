"""Run the cells of a sweep, watch them, report on them: variants × grid × seeds from one YAML file.

    evenkeel sweep plan sweeps/quickstart --pilot runs/sweeps/earlier     # what will it see?
    evenkeel sweep run sweeps/quickstart
    evenkeel sweep status sweeps/quickstart
    evenkeel sweep report sweeps/quickstart
    evenkeel sweep cell sweeps/quickstart lopti-s3

`plan` needs a pilot: two or three finished cells of this sweep, as `cell` runs them, or an earlier sweep's directory.
`run` first checks all variants. Started again after a kill, it continues from the cells' checkpoints.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from evenkeel.trainer.command import command_line, positive, refused_in_words
from evenkeel.trainer.run.config.shipped import named_path
from evenkeel.trainer.run.libraries import load_libraries

COMMANDS = {
    "plan": "which differences it will find, from a pilot",
    "run": "run all cells, or go on with them",
    "status": "show how far they are",
    "report": "compare the finished cells",
    "cell": "run one cell in this terminal",
}


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 all cells finished, 1 some failed, 2 refused, 130 stopped on request."""
    given = parser().parse_args(argv)
    if given.command in ("run", "cell"):
        load_libraries(given.file)
    from evenkeel.trainer.lab.sweeps import commands

    if given.command == "plan":
        return commands.plan(given.file, given.pilot, given.items, given.difference, given.outcome)
    if given.command == "cell":
        return commands.run_cell(given.file, given.name)
    return {"run": commands.run, "status": commands.status, "report": commands.report}[given.command](given.file)


def parser() -> argparse.ArgumentParser:
    whole = command_line(__name__, __doc__)
    commands = whole.add_subparsers(dest="command", required=True)
    for name, meaning in COMMANDS.items():
        command = commands.add_parser(name, help=meaning, description=meaning)
        command.add_argument("file", type=named_path, help="YAML file of the sweep")
        if name == "plan":
            command.add_argument("--pilot", type=Path, help="directory of finished cells")
            command.add_argument("--items", type=positive(int), help="held-out items; default: the pilot's")
            command.add_argument(
                "--difference", type=positive(float), help="difference to detect, in the outcome's unit"
            )
            first = "what to plan for; default: the first that the sweep names"
            command.add_argument("--outcome", help=first)
        if name == "cell":
            command.add_argument("name", help="of the cell, as `status` shows it")
    return whole
