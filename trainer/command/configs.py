"""The run files that ship with the package.

    evenkeel configs list
    evenkeel configs copy quickstart my_run.yaml     # yours to change; `evenkeel train my_run.yaml`

Paths that begin with `configs/` mean the shipped files, wherever the file lies that names them.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from evenkeel.errors import suggest
from evenkeel.trainer.command import command_line, refused_in_words
from evenkeel.trainer.run.config.shipped import CONFIGS, shipped_files

_SCHEMA = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")
"""The line by which an editor finds the schema of a file."""


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 2 refused."""
    given = parser().parse_args(argv)
    files = shipped_files()
    if given.command == "list":
        width = max(map(len, files)) + 2
        for name, path in files.items():
            first = _SCHEMA.sub("", path.read_text()).partition("\n")[0]
            print(f"{name:<{width}}{first.removeprefix('#').strip() if first.startswith('#') else ''}")
        return 0
    if given.name not in files:
        print(f"There is no shipped file {given.name!r}. {suggest(given.name, files)}", file=sys.stderr)
        return 2
    source, target = files[given.name], given.to or Path(files[given.name].name)
    if target.exists():
        print(f"{target} is there already. Name another file.", file=sys.stderr)
        return 2
    text = source.read_text()
    if schema := _SCHEMA.match(text):
        text = text.replace(schema[1], (source.parent / schema[1]).resolve().as_uri(), 1)
    if base := re.search(r"^extends: ([^\s#]+)", text, re.MULTILINE):
        shipped = (source.parent / base[1]).resolve().relative_to(CONFIGS.parent)
        text = text.replace(base[0], f"extends: {shipped}")
    target.write_text(text, encoding="utf-8")
    print(target)
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = command_line(__name__, __doc__)
    commands = whole.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="print their names")
    copy = commands.add_parser("copy", help="copy one")
    copy.add_argument("name", help="short name of a shipped file")
    copy.add_argument("to", nargs="?", type=Path, help="default: its own name here")
    return whole
