"""Every built-in strategy with its source and what was verified, and the signals that one of your own may name.

    evenkeel strategies
    evenkeel strategies signals

A run file names a strategy under `algorithm:`; `module:function` names one of your own.
"""

import argparse
from collections.abc import Sequence

from evenkeel.trainer.command import command_line


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0."""
    what = parser().parse_args(argv).what
    from evenkeel.trainer.algorithms.registry import signal_listing, strategy_listing

    print(signal_listing() if what == "signals" else strategy_listing())
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = command_line(__name__, __doc__)
    command.add_argument("what", nargs="?", choices=["signals"], help="the signals in place of the strategies")
    return command
