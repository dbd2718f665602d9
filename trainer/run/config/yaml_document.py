"""YAML 1.2 text → a tree that knows where each value is written, and plain data → YAML.

ruamel.yaml parses, types the scalars and tells the lines. ``1e-6`` is a number and ``010`` is 10; ``no``, ``on``
and ``2024-01-01`` are text.
"""

import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from evenkeel.errors import COMMAND_LINE, Origin, Problem, Refusal, suggest
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.shipped import shipped_files
from evenkeel.trainer.run.record.files import CONFIG, file_fault

DEEPEST, MOST_VALUES = 64, 10_000
"""Limits of nesting and of the number of values, aliases followed; a run file has six levels and a hundred values."""
MOST_BYTES = 1 << 18
"""Largest size of a file; a run file has two thousand bytes, a resolved one ten thousand."""

Place = tuple[str | int, ...]
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Node:
    """A value and where it is written. ``value`` is a mapping of nodes, a list of nodes, or a scalar."""

    value: Any
    origin: Origin

    def plain(self) -> Any:
        """The value without its origins."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        return [child.plain() for child in self.value] if isinstance(self.value, list) else self.value

    def child(self, key: str | int) -> "Node | None":
        """The node under a key of a mapping or at an index of a list; ``None`` where there is none."""
        if isinstance(self.value, dict):
            return self.value.get(key)
        inside = isinstance(self.value, list) and isinstance(key, int) and 0 <= key < len(self.value)
        return self.value[key] if inside else None

    def at(self, keys: Iterable[str | int]) -> "Node | None":
        """The node at the place below this one that the keys lead to; ``None`` where there is none."""
        node: Node | None = self
        for key in keys:
            node = node and node.child(key)
        return node


def read_file(path: Path) -> Node:
    """The mapping that a YAML file holds.

    Raises:
        Refusal: the file cannot be read, is not YAML, is empty or not a mapping, or writes a key twice.
    """
    origin = Origin(str(path), None, path.parent)
    if fault := file_fault(path, MOST_BYTES):
        raise config_error("unreadable-file", "", f"the file {fault}.", "Name a YAML file.", origin)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "cannot be read").lower() if isinstance(error, OSError) else "it is not UTF-8 text"
        what = f"the file cannot be read: {reason}."
        raise config_error("unreadable-file", "", what, _instead(path), origin) from None
    node = _parse(text, origin)
    if not isinstance(node.value, dict):
        what = "the file holds no keys."
        raise config_error("no-sections", "", what, "`evenkeel configs list` names some to copy.", origin)
    return node


def _instead(path: Path) -> str:
    """What to name in place of a path that is no file."""
    if os.path.isfile(run := path / CONFIG):
        again = f"`evenkeel train {run} --resume {path}` goes on with it, `evenkeel train --rerun {path}` repeats it"
        return f"Name {run}; {again}."
    if os.path.lexists(path):
        return "Name a YAML file in UTF-8."
    names = [*shipped_files(), *map(str, path.parent.glob("*.yaml"))]
    return suggest(str(path), names, "Name a YAML file.")


def read_value(text: str, path: str) -> Node:
    """The value of an override ``path=text`` given on the command line, read by the same rules as a file."""
    return _parse(text, COMMAND_LINE, tuple(path.split(".")))


def scalar(text: str) -> Any:
    """The YAML value of a text: ``"1e-6"`` gives the number; ``None`` if it is not YAML."""
    try:
        return read_value(text, "value").plain()
    except Refusal:
        return None


def write(data: Any) -> str:
    """Plain data as YAML that ``read_file`` reads back as equal data."""
    stream = io.StringIO()
    _yaml().dump(data, stream)
    return stream.getvalue()


def _yaml() -> Any:
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.allow_unicode = True
    yaml.width = 4096
    return yaml


@lru_cache(maxsize=256)  # a sweep reads one base for its cells
def _composed(text: str) -> Any:
    return _yaml().compose(text)


def _parse(text: str, origin: Origin, path: Place = ()) -> Node:
    reader = _Reader(origin)
    try:
        composed = _composed(text)
        node = Node(None, origin) if composed is None else reader.node(composed, path, origin)
    except RecursionError:
        raise reader.too_large(path, origin) from None
    except YAMLError as error:
        marked = error if isinstance(error, MarkedYAMLError) else None
        mark = marked and (marked.problem_mark or marked.context_mark)
        reason = (marked.problem or marked.context) if marked else str(error).splitlines()[0]
        place = Origin(origin.source, mark.line + 1, origin.folder) if mark and origin is not COMMAND_LINE else origin
        raise config_error("not-yaml", ".".join(map(str, path)), f"this is not YAML: {reason}.", "", place) from None
    if reader.problems:
        raise Refusal(problems=reader.problems)
    return node


class _Reader:
    """Turns ruamel's nodes into ours and collects what a configuration must not contain."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.problems: list[Problem] = []
        self._constructor = _yaml().constructor
        self._values = 0

    def too_large(self, path: Place, origin: Origin) -> Refusal:
        what = f"there are more than {DEEPEST} levels or {MOST_VALUES:,} values here."
        return config_error("too-large", str(path[0]) if path else "", what, "Look for an open bracket.", origin)

    def node(self, composed: Any, path: Place, origin: Origin) -> Node:
        """Our node for ruamel's; ``origin`` is the line of its key, or of the value itself at the root.

        Raises:
            Refusal: it is too deep or too large; at once, as reading on could take forever.
        """
        self._values += 1
        if len(path) > DEEPEST or self._values > MOST_VALUES:
            raise self.too_large(path, origin)
        tag = str(composed.tag)
        value: Any = None
        if isinstance(composed, ScalarNode):
            try:
                found = self._constructor.construct_object(composed)
                value = found if found is None or isinstance(found, bool | int | float | str) else composed.value
            except (ValueError, KeyError, YAMLError):
                self._refuse("unknown-tag", path, origin, f"is {composed.value!r:.60}, which is no {tag}.")
        elif isinstance(composed, MappingNode) and tag == f"{_TAG}map":
            value = dict(self._entries(composed, path))
        elif isinstance(composed, SequenceNode) and tag == f"{_TAG}seq":
            items = enumerate(composed.value)
            value = [self.node(item, (*path, index), self._at(item)) for index, item in items]
        else:
            self._refuse("unknown-tag", path, origin, f"has the tag {tag}.", "Leave it out.")
        return Node(value, origin)

    def _entries(self, composed: Any, path: Place) -> Iterator[tuple[str, Node]]:
        first_line: dict[str, Origin] = {}
        for key_node, value_node in composed.value:
            origin, key = self._at(key_node), key_node.value
            if str(key_node.tag) != f"{_TAG}str":
                self._refuse("bad-key", path, origin, f"the key {key!r:.60} is not text.", "Write it in quotes.")
            elif key in first_line:
                what = f"is written twice, first at {first_line[key]}."
                self._refuse("key-twice", (*path, key), origin, what, "Delete one.")
            else:
                first_line[key] = origin
                yield key, self.node(value_node, (*path, key), origin)

    def _at(self, composed: Any) -> Origin:
        if self.origin is COMMAND_LINE:
            return self.origin
        return Origin(self.origin.source, composed.start_mark.line + 1, self.origin.folder)

    def _refuse(self, code: str, path: Place, origin: Origin, what: str, instead: str = "") -> None:
        self.problems.append(Problem(path, what, instead, origin, code=code))
