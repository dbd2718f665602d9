"""The commands of `evenkeel`, a module each: ``parser()`` is its command line, ``main(argv)`` its exit status.

On a CPU torch computes with two threads that sleep while they wait, unless the environment says otherwise: a tiny model
gains nothing from more, and threads that spin slow down a busy machine.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import NoReturn

from evenkeel.errors import Refusal

os.environ.setdefault("OMP_NUM_THREADS", "2")  # before torch
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

COMMANDS = {
    "train": "train a policy as a run file says",
    "launch": "train on several processes",
    "check": "what a run will do, and what is wrong with its file",
    "evaluate": "answer held-out rows with a model or checkpoint",
    "sweep": "many runs from one file: variants, seeds, verdicts",
    "branch": "continue a run in several ways from a checkpoint",
    "claim": "test a paper's claim by a sweep",
    "report": "compare finished runs on one page",
    "rollouts": "read what a run's policy answered",
    "gradients": "what strategies do to the gradient, on the same rollouts",
    "doctor": "what is wrong with a run, from its log",
    "audit": "what is wrong with a reward function",
    "export": "a checkpoint as a model for others",
    "strategies": "the built-in strategies and their sources",
    "verifiers": "the built-in verifiers",
    "schema": "JSON Schema of run, sweep and claim files, for editors",
    "configs": "list the shipped run files, or copy one",
    "completion": "print a script for bash, zsh or fish",
}
TRANSLATED = ("train", "launch", "check", "evaluate", "sweep")
"""Commands whose words are read by `evenkeel.trainer.command.translation` first."""

RUN_FILE = "YAML file of the run, or the short name of a shipped one"
OVERRIDES = "dotted settings that replace the file's"
SETTING = re.compile(r"[\w.-]+=")
"""How one begins; in a path a slash comes before the first ``=``."""


class CommandLine(argparse.ArgumentParser):
    """A parser that refuses in one line."""

    def error(self, message: str) -> NoReturn:
        """End with status 2; the usage is a word away."""
        wrong = message.removesuffix(", key=value")  # argparse calls them required, and none is
        self.exit(2, f"{self.prog}: {wrong} (`{self.prog} --help`)\n")


def command_line(module: str, documentation: str | None) -> argparse.ArgumentParser:
    """The parser of a command; its help begins with the module's docstring, and so with its examples."""
    return CommandLine(
        prog=f"evenkeel {module.rpartition('.')[2]}",
        description=documentation,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """A ``type`` for argparse: reads a number of a kind, and refuses 0 and below."""

    def read(text: str) -> float:
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"it is {text}, and must be above 0")
        return value

    read.__name__ = kind.__name__  # argparse: invalid int value
    return read


def refused_in_words(main: Callable[[Sequence[str] | None], int]) -> Callable[..., int]:
    """``main`` that prints a `Refusal`, or a file that cannot be read or written, as one message, and returns 2."""

    @wraps(main)
    def answered(argv: Sequence[str] | None = None) -> int:
        try:
            return main(argv)
        except BrokenPipeError:
            raise
        except Exception as error:
            from evenkeel.trainer.run.processes import is_full

            of_a_file = isinstance(error, OSError) and error.filename
            if not (isinstance(error, Refusal) or of_a_file or is_full(error)):
                raise
            print(f"\n{error}", file=sys.stderr)
        return 2

    return answered
