"""The command line of a program: `python -m scripts.benchmarks.update`, `python -m scripts.research.cancellation`."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal


def run(
    description: str | None,
    add_arguments: Callable[[argparse.ArgumentParser], None],
    measure: Callable[[argparse.Namespace], Any],
) -> int:
    """Exit status: 0 measured, 2 refused; what is measured goes to the file of --json."""
    command = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add_arguments(command)
    command.add_argument("--json", type=Path, help="also write everything measured to this file")
    options = command.parse_intermixed_args()
    try:
        measured = measure(options)
    except Refusal as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    if options.json is not None:
        options.json.write_text(json.dumps(measured, indent=2) + "\n")
    return 0
