"""The commands of `evenkeel`, a module each: ``parser()`` is its command line, ``main(argv)`` its exit status.

On a CPU torch computes with two threads that sleep while they wait, unless the environment says otherwise: a tiny model
gains nothing from more, and threads that wait awake slow a busy machine down.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "2")  # before torch
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

COMMANDS = {
    "train": "train a policy as a run file says",
    "launch": "train on several processes: accelerate launch with the ranks' own exit status",
    "check": "what a run will do, and everything that is wrong with its file",
    "evaluate": "answer and judge held-out rows with a model or checkpoint",
    "sweep": "many runs from one file: variants, seeds, verdicts",
    "branch": "continue a run in several ways from one of its checkpoints",
    "claim": "ask a paper's sentence of a sweep: supported, contradicted or not decided",
    "report": "compare finished runs on one page",
    "rollouts": "read what a run's policy answered",
    "gradients": "what strategies do to the gradient, on the same rollouts",
    "doctor": "what is wrong with a run, from its log: ours, TRL's, W&B's or verl's",
    "audit": "what is wrong with a reward function: TRL's signature, verl's or ours",
    "export": "a checkpoint as a model that others can load",
    "strategies": "the built-in strategies, their sources and evidence",
    "verifiers": "the built-in verifiers",
    "schema": "what a run, sweep or claim file may hold, as JSON Schema for editors",
    "configs": "list the shipped run files, or copy one",
    "completion": "print a script with which bash, zsh or fish completes all of this",
}

RUN_FILE = "YAML file of the run, or the short name of a shipped one"


def command_line(module: str, documentation: str | None) -> argparse.ArgumentParser:
    """The parser of a command; its help begins with the module's documentation, and so with its examples."""
    return argparse.ArgumentParser(
        prog=f"evenkeel {module.rpartition('.')[2]}",
        description=documentation,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_command(commands: Any, name: str, meaning: str, documentation: str | None) -> argparse.ArgumentParser:
    """A command below another one; its help shows those examples of the other's documentation that are its own."""
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=meaning, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    examples = [line for line in (documentation or "").splitlines() if line.strip().startswith(command.prog)]
    command.description = "\n".join([f"{meaning[0].upper()}{meaning[1:]}.", "", *examples])
    return command


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """A ``type`` for argparse: reads a number of a kind, and refuses 0 and below."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            words = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"it is {text!r}, which is not {words}") from None
        if not value > 0:
            raise argparse.ArgumentTypeError(f"it is {text}, and must be above 0")
        return value

    return read


def refused_in_words(main: Callable[[Sequence[str] | None], int]) -> Callable[..., int]:
    """``main``, whose `Refusal` is printed as its message alone; the exit status is then 2."""

    @wraps(main)
    def answered(argv: Sequence[str] | None = None) -> int:
        from evenkeel.errors import Refusal

        try:
            return main(argv)
        except Refusal as refusal:
            print(f"\n{refusal}", file=sys.stderr)
            return 2

    return answered
