"""YAML 1.2 text → a tree that knows where each value is written, and plain data → YAML.

The scalars are those of the core schema of YAML 1.2.2 (§10.3.2) and no others: ``1e-6`` and ``1E5`` are numbers,
``0o10`` is 8, ``010`` is 10; ``no``, ``on``, ``1_000``, ``2024-01-01`` and ``<<`` are text. ruamel.yaml parses and says
the lines; its own scalar rules are replaced because they keep some of YAML 1.1 (underscores in numbers, dates, merge
keys).
"""

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.tag import Tag

from evenkeel.errors import COMMAND_LINE, Origin, Problem, Refusal
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.record.files import file_fault

DEEPEST = 64
"""Largest number of mappings and lists inside one another; a run file has six."""
MOST_BYTES = 1 << 18
"""Largest size of a file; a run file has two thousand bytes, a resolved one ten thousand."""
MOST_REPEATED = 10_000
"""Largest number of values that aliases may repeat: nine lists of ten aliases to the list before are a billion."""

_MOST_DIGITS = 100
_TAG = "tag:yaml.org,2002:"
_CORE_SCHEMA = (
    ("null", re.compile(r"~|null|Null|NULL|")),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE")),
    ("int", re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")),
    ("float", re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")),
    ("float", re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")),
    ("str", re.compile(r".*", re.DOTALL)),
)


class _CoreSchemaResolver(VersionedResolver):
    """Gives an untagged plain scalar its tag by the core schema, when reading and when deciding what to quote."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is ScalarNode and implicit[0]:
            return Tag(suffix=_TAG + _implicit_tag(value))
        return super().resolve(kind, value, (False, False))


def _implicit_tag(text: str) -> str:
    return next(tag for tag, pattern in _CORE_SCHEMA if pattern.fullmatch(text))


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
        raise config_error("unreadable-file", "", f"the file {fault}.", "Name a YAML file that somebody wrote.", origin)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        if "=" in path.name:
            what = f"{str(path)!r} is a setting, and the name of the file comes first."
            raise config_error("no-file", "", what, f"Write FILE.yaml {path}.") from None
        reason = "is a folder" if path.is_dir() else (error.strerror or "cannot be read").lower()
        what = f"the configuration cannot be read: {reason}."
        raise config_error("unreadable-file", "", what, "Name a YAML file that exists.", origin) from None
    except UnicodeDecodeError:
        what = "the file is not UTF-8 text, as YAML must be."
        raise config_error("not-utf8", "", what, "Save it as UTF-8.", origin) from None
    node = _parse(text, origin)
    if not isinstance(node.value, dict):
        what = "the file is empty." if node.value is None else "the file is not a mapping of sections."
        raise config_error("no-sections", "", what, "Start with the sections, for instance `model:`.", origin)
    return node


def read_value(text: str, path: str) -> Node:
    """The value of an override ``path=text`` given on the command line, read by the same rules as a file.

    Raises:
        Refusal: the text is not a YAML value.
    """
    return _parse(text, COMMAND_LINE, path)


def scalar(text: str) -> Any:
    """What an unquoted YAML scalar with this text means: ``"1e-6"`` gives the number, ``"no"`` the text."""
    return _scalar_value(_implicit_tag(text), text)


def write(data: Any) -> str:
    """Plain data as YAML that ``read_file`` reads back as equal data."""
    stream = io.StringIO()
    _yaml().dump(data, stream)
    return stream.getvalue()


def _yaml() -> Any:
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.Resolver = _CoreSchemaResolver
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.allow_unicode = True
    yaml.width = 4096
    return yaml


@lru_cache(maxsize=256)  # a sweep reads one base for each of its cells, and this is most of what reading costs
def _composed(text: str) -> Any:
    return _yaml().compose(text)


def _parse(text: str, origin: Origin, path: str = "") -> Node:
    reader = _Reader(origin)
    try:
        composed = _composed(text)
        node = Node(None, origin) if composed is None else reader.node(composed, path, origin)
    except RecursionError:
        raise _too_deep(path, origin) from None
    except YAMLError as error:
        marked = error if isinstance(error, MarkedYAMLError) else None
        mark = marked and (marked.problem_mark or marked.context_mark)
        reason = (marked.problem or marked.context) if marked else str(error).splitlines()[0]
        place = Origin(origin.source, mark.line + 1, origin.folder) if mark and origin is not COMMAND_LINE else origin
        instead = "Check the indentation, the brackets and the quotes around there."
        raise config_error("not-yaml", path, f"this is not YAML: {reason}.", instead, place) from None
    if reader.problems:
        raise Refusal(problems=reader.problems)
    return node


def _too_deep(path: str, origin: Origin) -> Refusal:
    what = f"mappings and lists are nested more than {DEEPEST} levels deep, and no setting is."
    instead = "Look for an opening bracket that is repeated or never closed."
    return config_error("too-deep", path.split(".")[0], what, instead, origin)


class _Reader:
    """Turns ruamel's nodes into ours and collects what a configuration must not contain."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.problems: list[Problem] = []
        self._open: set[int] = set()
        self._seen: set[int] = set()
        self._repeated = 0

    def node(self, composed: Any, path: str, origin: Origin) -> Node:
        """Our node for ruamel's; ``origin`` is the line of its key, or of the value itself at the root.

        Raises:
            Refusal: it is nested too deep, or repeated too often; at once, as reading on could take for ever.
        """
        if id(composed) in self._open:
            self._refuse("alias-of-itself", path, origin, "an alias names a value that contains it.", "Write it out.")
            return Node(None, origin)
        if len(self._open) >= DEEPEST:
            raise _too_deep(path, origin)
        self._repeated += id(composed) in self._seen
        if self._repeated > MOST_REPEATED:
            what = f"aliases (*name) repeat what they stand for more than {MOST_REPEATED:,} times."
            instead = "Use fewer aliases inside one another."
            raise config_error("too-many-aliases", path.split(".")[0], what, instead, origin)
        self._seen.add(id(composed))
        self._open.add(id(composed))
        try:
            return Node(self._value(composed, path, origin), origin)
        finally:
            self._open.remove(id(composed))

    def _value(self, composed: Any, path: str, origin: Origin) -> Any:
        tag = str(composed.tag).removeprefix(_TAG)
        if isinstance(composed, ScalarNode):
            try:
                return _scalar_value(tag, composed.value)
            except (ValueError, KeyError):
                shown = f"{composed.value!r:.60}"
                what = f"the tag {composed.tag} does not fit {shown}, or is not allowed in a configuration."
        elif tag == "map" and isinstance(composed, MappingNode):
            return dict(self._entries(composed, path))
        elif tag == "seq":
            items = enumerate(composed.value)
            return [self.node(item, _joined(path, str(index)), self._at(item)) for index, item in items]
        else:
            what = f"the tag {composed.tag} is not allowed in a configuration."
        self._refuse("unknown-tag", path, origin, what, "Leave the tag out.")
        return None

    def _entries(self, composed: Any, path: str) -> Iterator[tuple[str, Node]]:
        first_line: dict[str, Origin] = {}
        for key_node, value_node in composed.value:
            origin, key = self._at(key_node), key_node.value
            if not isinstance(key_node, ScalarNode):
                self._refuse("bad-key", path, origin, "a key is a list or a mapping.", "Write text for the key.")
            elif str(key_node.tag) != f"{_TAG}str":
                self._refuse("bad-key", path, origin, f"the key {key!r} is not text.", "Write the key in quotes.")
            elif key == "<<":
                self._refuse("bad-key", path, origin, "`<<` merges mappings in YAML 1.1 only.", "Write the keys out.")
            elif key in first_line:
                what = f"the key is written twice, first at {first_line[key]}; the second would silently win."
                self._refuse("key-twice", _joined(path, key), origin, what, "Delete one of the two.")
            else:
                first_line[key] = origin
                yield key, self.node(value_node, _joined(path, key), origin)

    def _at(self, composed: Any) -> Origin:
        if self.origin is COMMAND_LINE:
            return self.origin
        return Origin(self.origin.source, composed.start_mark.line + 1, self.origin.folder)

    def _refuse(self, code: str, path: str, origin: Origin, what: str, instead: str) -> None:
        self.problems.append(Problem(tuple(path.split(".")) if path else (), what, instead, origin, code=code))


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _scalar_value(tag: str, text: str) -> Any:
    if tag == "int" and len(text) > _MOST_DIGITS:
        raise ValueError(f"{len(text)} digits")
    if tag == "int":
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if tag == "float":
        return float(re.sub(r"\.(inf|nan)\Z", r"\1", text.lower()))
    if tag == "bool":
        return {"true": True, "false": False}[text.lower()]
    return {"str": text, "null": None}[tag]
