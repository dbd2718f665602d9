"""Every built-in strategy with its source and what was verified, and the signals that one of your own may name.

    evenkeel strategies
    evenkeel strategies rloo
    evenkeel strategies signals

A run file names a strategy under `algorithm:`; `module:function` names one of your own.
"""

import argparse
import sys
from collections.abc import Sequence
from inspect import getdoc
from itertools import chain

from evenkeel.errors import Refusal, suggest
from evenkeel.trainer.command import command_line, refused_in_words


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0; 2 refused: there is no such strategy."""
    name = parser().parse_args(argv).name
    from evenkeel.trainer.algorithms.registry import signal_listing, strategy_listing, strategy_table

    if name == "signals":
        print(signal_listing())
    elif name is not None:
        print(_documentation(name))
    elif sys.stdout.isatty():
        for row in strategy_table():
            print(f"{row['kind']:<16}{row['name']:<26}{row['what']}")
    else:
        print(strategy_listing())
    return 0


def _documentation(name: str) -> str:
    from evenkeel.trainer.algorithms.registry import KINDS, built_in

    families = {kind: built_in(kind) for kind in KINDS}
    kinds = [kind for kind in KINDS if name in families[kind]]
    if not kinds:
        raise Refusal(f"There is no strategy {name!r}. {suggest(name, chain(*families.values()))}")
    return "\n\n".join(f"algorithm.{kind}: {name}\n\n{getdoc(families[kind][name])}" for kind in kinds)


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("name", nargs="?", metavar="NAME", help="only this one; signals: the signals")
    return command
