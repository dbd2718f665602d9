"""The command line of a folder of programs: `python -m scripts.FOLDER NAME …`."""

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenkeel.errors import Refusal


def run_one_of(
    package: str,
    description: str,
    programs: Mapping[str, str],
    arguments: Sequence[str] | None,
    shared: Callable[[str, argparse.ArgumentParser], Any] = lambda name, command: None,
) -> int:
    """Exit status: 0 measured, 2 refused.

    Args:
        programs: module of ``package`` → what it measures. Each has ``add_arguments(command)`` and
            ``measure(options)``, whose result goes to the file of ``--json`` where there is such an argument.
        arguments: the module's name, and its own; ``None`` = those of this process.
        shared: adds the arguments that several of the programs have.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    first = argparse.ArgumentParser(
        prog=f"python -m {package}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    first.add_argument("program", choices=list(programs), help="`… NAME --help` lists its own arguments")
    name = first.parse_args(given[:1]).program
    options = command_line(package, name, programs[name], shared).parse_intermixed_args(given[1:])
    try:
        measured = importlib.import_module(f"{package}.{name}").measure(options)
    except Refusal as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    if getattr(options, "json", None) is not None:
        options.json.write_text(json.dumps(measured, indent=2) + "\n")
    return 0


def command_line(
    package: str, name: str, description: str, shared: Callable[[str, argparse.ArgumentParser], Any]
) -> argparse.ArgumentParser:
    """That of one program."""
    command = argparse.ArgumentParser(prog=f"python -m {package} {name}", description=description, allow_abbrev=False)
    shared(name, command)
    importlib.import_module(f"{package}.{name}").add_arguments(command)
    return command
