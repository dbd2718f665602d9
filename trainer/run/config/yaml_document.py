"""YAML 1.2 text → a tree that remembers where each value was written, and plain data → YAML.

The scalars are those of the core schema of YAML 1.2.2 (§10.3.2) and no others: ``1e-6`` and ``1E5`` are numbers,
``0o10`` is 8, ``010`` is 10; ``no``, ``on``, ``1_000``, ``2024-01-01`` and ``<<`` are text. ruamel.yaml parses; its own
scalar rules are replaced because they keep some of YAML 1.1 (underscores in numbers, dates, merge keys).
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.tag import Tag

from trainer.run.config.problems import COMMAND_LINE, ConfigError, Origin, Problem

DEEPEST = 64
"""Levels of mappings and lists in one another; a run file has six."""
MOST_REPEATED = 10_000
"""Values that aliases may add to those that are written: nine lists of ten aliases to the list before are a billion."""

_NULL, _BOOL, _INT, _FLOAT, _STR = (f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str"))


_CORE_SCHEMA = (
    (_NULL, re.compile(r"~|null|Null|NULL|")),
    (_BOOL, re.compile(r"true|True|TRUE|false|False|FALSE")),
    (_INT, re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")),
    (_FLOAT, re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")),
    (_FLOAT, re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")),
)


def _implicit_tag(text: str) -> str:
    return next((tag for tag, pattern in _CORE_SCHEMA if pattern.fullmatch(text)), _STR)


class _CoreSchemaResolver(VersionedResolver):
    """Gives an untagged plain scalar its tag by the core schema, when reading and when deciding what to quote."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is ScalarNode and implicit[0]:
            return Tag(suffix=_implicit_tag(value))
        return super().resolve(kind, value, (False, False))


@dataclass(frozen=True)
class Node:
    """A value and where it was written. ``value`` is a mapping of nodes, a list of nodes, or a scalar."""

    value: Any
    origin: Origin

    def plain(self) -> Any:
        """The value without its origins."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    def child(self, key: str | int) -> "Node | None":
        """The node under a key of a mapping or at an index of a list; ``None`` where there is none."""
        if isinstance(self.value, dict) and key in self.value:
            return self.value[key]
        if isinstance(self.value, list) and isinstance(key, int) and 0 <= key < len(self.value):
            return self.value[key]
        return None


def read_file(path: Path) -> Node:
    """The mapping that a YAML file holds.

    Raises:
        ConfigError: the file cannot be read, is no YAML, is empty or no mapping, or writes a key twice.
    """
    origin = Origin(str(path), None, path.parent)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        if "=" in path.name:
            what = f"{str(path)!r} stands where the file is named, and is a setting."
            raise ConfigError([Problem("", what, f"Write the file first: FILE.yaml {path}.")]) from None
        reason = "is a folder" if path.is_dir() else (error.strerror or "cannot be read").lower()
        raise ConfigError(
            [Problem("", f"the configuration cannot be read: {reason}.", "Name a YAML file that exists.", origin)]
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(
            [Problem("", "the file is not UTF-8 text, as YAML must be.", "Save it as UTF-8.", origin)]
        ) from None
    node = _parse(text, origin)
    if not isinstance(node.value, dict):
        what = "the file is empty." if node.value is None else "the file is no mapping of sections."
        raise ConfigError([Problem("", what, "Start with the sections, for instance `model:`.", origin)])
    return node


def read_value(text: str, path: str) -> Node:
    """The value of an override ``path=text`` given on the command line, read by the same rules as a file.

    Raises:
        ConfigError: the text is no YAML value.
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


def _parse(text: str, origin: Origin, path: str = "") -> Node:
    try:
        composed = _composed(text)
    except YAMLError as error:
        raise ConfigError([_syntax_problem(error, origin, path)]) from None
    except RecursionError:
        raise ConfigError([_too_deep(origin, path)]) from None
    if composed is None:
        return Node(None, origin)
    reader = _Reader(origin, path)
    node = reader.node(composed, path, origin)
    if reader.problems:
        raise ConfigError(reader.problems)
    return node


@lru_cache(maxsize=256)  # a sweep reads one base for each of its cells, and this is most of what reading costs
def _composed(text: str) -> Any:
    return _yaml().compose(text)


def _syntax_problem(error: YAMLError, origin: Origin, path: str) -> Problem:
    mark = error.problem_mark or error.context_mark if isinstance(error, MarkedYAMLError) else None
    reason = (error.problem or error.context) if isinstance(error, MarkedYAMLError) else str(error).splitlines()[0]
    line = None if mark is None or origin is COMMAND_LINE else mark.line + 1
    return Problem(
        path,
        f"this is not YAML: {reason}.",
        "Check the indentation, the brackets and the quotes around there.",
        Origin(origin.source, line, origin.folder),
    )


def _too_deep(origin: Origin, path: str) -> Problem:
    what = f"mappings and lists stand in one another more than {DEEPEST} levels deep, and no setting does."
    return Problem(path, what, "Look for an opening bracket that is repeated or never closed.", origin)


class _Reader:
    """Turns ruamel's nodes into ours and collects what a configuration must not contain."""

    def __init__(self, origin: Origin, path: str) -> None:
        self.origin = origin
        self.problems: list[Problem] = []
        self._open: set[int] = set()
        self._seen: set[int] = set()
        self._repeated = 0

    def node(self, composed: Any, path: str, origin: Origin) -> Node:
        """Our node for ruamel's; ``origin`` is the line of its key, or of the value itself at the root.

        Raises:
            ConfigError: there is no end to it: at once, for nothing beside it is worth the time.
        """
        if id(composed) in self._open:
            return self._refused(path, origin, "an alias refers to a value that contains it.", "Write it out.")
        if len(self._open) >= DEEPEST:
            raise ConfigError([_too_deep(origin, path.split(".")[0])])
        self._repeated += id(composed) in self._seen
        if self._repeated > MOST_REPEATED:
            what = f"aliases (*name) repeat what they stand for more than {MOST_REPEATED:,} times."
            raise ConfigError([Problem(path.split(".")[0], what, "Write fewer of them in one another.", origin)])
        self._seen.add(id(composed))
        self._open.add(id(composed))
        try:
            return Node(self._value(composed, path, origin), origin)
        finally:
            self._open.remove(id(composed))

    def _value(self, composed: Any, path: str, origin: Origin) -> Any:
        if not isinstance(composed, ScalarNode) and not str(composed.tag).endswith(("2002:map", "2002:seq")):
            return self._refused(path, origin, f"a configuration holds no {composed.tag}.", "Leave the tag out.").value
        if isinstance(composed, MappingNode):
            return dict(self._entries(composed, path))
        if isinstance(composed, SequenceNode):
            return [
                self.node(item, _joined(path, str(index)), self._at(item)) for index, item in enumerate(composed.value)
            ]
        try:
            return _scalar_value(str(composed.tag), composed.value)
        except (ValueError, KeyError):
            what = f"the tag {composed.tag} does not fit {composed.value!r}, or is none that a configuration can hold."
            return self._refused(path, origin, what, "Leave the tag out.").value

    def _entries(self, composed: Any, path: str) -> Iterator[tuple[str, Node]]:
        first_line: dict[str, Origin] = {}
        for key_node, value_node in composed.value:
            origin = self._at(key_node)
            if not isinstance(key_node, ScalarNode):
                self._refused(path, origin, "a key is a list or a mapping.", "Write text for the key.")
                continue
            key = key_node.value
            key_path = _joined(path, str(key))
            if str(key_node.tag) != _STR:
                self._refused(path, origin, f"the key {key!r} is not text.", "Write the key in quotes.")
            elif key == "<<":
                self._refused(path, origin, "`<<` merges mappings in YAML 1.1 only.", "Write the keys out.")
            elif key in first_line:
                what = f"the key is written twice, first at {first_line[key]}; the second would silently win."
                self._refused(key_path, origin, what, "Delete one of the two.")
            else:
                first_line[key] = origin
                yield key, self.node(value_node, key_path, origin)

    def _at(self, composed: Any) -> Origin:
        if self.origin is COMMAND_LINE:
            return self.origin
        return Origin(self.origin.source, composed.start_mark.line + 1, self.origin.folder)

    def _refused(self, path: str, origin: Origin, what: str, instead: str) -> Node:
        self.problems.append(Problem(path, what, instead, origin))
        return Node(None, origin)


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _scalar_value(tag: str, text: str) -> Any:
    if tag == _STR:
        return text
    if tag == _NULL:
        return None
    if tag == _BOOL:
        return {"true": True, "false": False}[text.lower()]
    if tag == _INT:
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if tag == _FLOAT:
        return float(re.sub(r"\.(inf|nan)\Z", r"\1", text.lower()))
    raise ValueError(tag)
