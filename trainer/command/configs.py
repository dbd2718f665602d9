"""The run files that ship with the package.

    evenkeel configs list
    evenkeel configs copy quickstart my_run.yaml     # yours to change; `evenkeel train my_run.yaml`

Paths that begin with `configs/` mean the shipped files, wherever the file lies that names them.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from shutil import copyfile

from evenkeel.errors import Refusal, suggest
from evenkeel.trainer.command import command_line, refused_in_words
from evenkeel.trainer.run.config.layers import extended
from evenkeel.trainer.run.config.shipped import shipped_files
from evenkeel.trainer.run.config.yaml_document import read_file, write

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
        raise Refusal(f"There is no shipped file {given.name!r}. {suggest(given.name, files)}")
    source, target = files[given.name], given.to or Path(files[given.name].name)
    if target.exists():
        raise Refusal(f"{target} is there already. Name another file.")
    text = _whole(source)
    if found := _SCHEMA.match(text):
        schema = target.with_name(Path(found[1]).name)
        text = text.replace(found[1], schema.name, 1)
        if not schema.exists():
            print(copyfile(source.parent / found[1], schema))
    target.write_text(text, encoding="utf-8")
    print(target)
    return 0


def _whole(source: Path) -> str:
    """The text of a file; of one that extends another its first comment, and all settings."""
    text, tree = source.read_text(encoding="utf-8"), read_file(source)
    if tree.child("extends") is None:
        return text
    return "".join([*text.partition("\n\n")[:2], write(extended(tree).plain())])


def parser() -> argparse.ArgumentParser:
    whole = command_line(__name__, __doc__)
    commands = whole.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="print their names")
    copy = commands.add_parser("copy", help="copy one")
    copy.add_argument("name", help="short name of a shipped file")
    copy.add_argument("to", nargs="?", type=Path, help="default: its own name here")
    return whole
