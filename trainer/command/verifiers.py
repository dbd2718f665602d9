"""The built-in verifiers, each with the first line of its documentation.

    evenkeel verifiers

A run file names a verifier under `rewards:`; `module:function` names one of your own.
"""

import argparse
import inspect
from collections.abc import Sequence

from evenkeel.rewards.parts import VERIFIERS
from evenkeel.trainer.command import command_line


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0."""
    parser().parse_args(argv)
    width = max(map(len, VERIFIERS)) + 2
    for name, verifier in VERIFIERS.items():
        print(f"{name:<{width}}{(inspect.getdoc(verifier) or '').partition(chr(10))[0]}")
    return 0


def parser() -> argparse.ArgumentParser:
    return command_line(__name__, __doc__)
