"""A run's tree from its layers: the base it extends, its own file, the overrides of the command line.

Mappings merge key by key; lists and scalars replace. A mapping whose ``name`` differs from that of the mapping below it
replaces it whole, so that the options of another strategy do not leak in. A run's own ``name`` and ``output_dir`` are
never inherited: two experiments on one baseline must not write into the same directory.
"""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer.run.config.file_kinds import RUN, check_kind
from trainer.run.config.problems import COMMAND_LINE, ConfigError, Problem
from trainer.run.config.yaml_document import Node, read_file, read_value

_NOT_INHERITED = ("name", "output_dir")
_EXAMPLE = "Write it like trl.learning_rate=1e-6, rewards.0.weight=2 or algorithm.advantage='{name: rloo}'."


def layered(path: Path, overrides: Sequence[str]) -> Node:
    """The merged tree of a file, the one base that it may extend, and the overrides in their order.

    Raises:
        ConfigError: a file cannot be read, the base extends another, or overrides are malformed (all are reported).
    """
    tree = read_file(path)
    check_kind(tree, RUN)
    tree = extended(tree)
    problems: list[Problem] = []
    for override in overrides:
        try:
            tree = overridden(tree, override)
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigError(problems)
    return tree


def extended(tree: Node) -> Node:
    """The tree over the one base that its ``extends`` names, by the rule at the top of this file.

    Raises:
        ConfigError: there is no such file, it cannot be read, or it extends another.
    """
    extends = tree.child("extends")
    if extends is None:
        return tree
    if not isinstance(extends.value, str) or not extends.value:
        raise _refused("extends", f"is {extends.plain()!r}, not the name of a file.", "Name one YAML file.", extends)
    base_path = extends.origin.folder / extends.value
    if not base_path.is_file():
        here = sorted(file.name for file in base_path.parent.glob("*.yaml"))
        near = difflib.get_close_matches(base_path.name, here, n=1)
        instead = f"Did you mean {near[0]}?" if near else "The path is relative to the file that says `extends`."
        raise _refused("extends", f"there is no file {base_path}.", instead, extends)
    base = read_file(base_path)
    if (further := base.child("extends")) is not None:
        what = f"{base_path} itself extends {further.plain()!r}; only one level can be followed by a reader."
        raise _refused("extends", what, "Extend that file directly, or write its lines into the base.", extends)
    inherited = {key: node for key, node in base.value.items() if key not in _NOT_INHERITED}
    own = {key: node for key, node in tree.value.items() if key != "extends"}
    return Node({**inherited, **{key: _over(inherited.get(key), node) for key, node in own.items()}}, tree.origin)


def merged(base: Node, change: Node) -> Node:
    """``change`` laid over ``base`` by the rule at the top of this file."""
    if not isinstance(base.value, dict) or not isinstance(change.value, dict) or _renamed(base, change):
        return change
    return Node(
        {**base.value, **{key: _over(base.value.get(key), node) for key, node in change.value.items()}}, change.origin
    )


def _over(base: Node | None, change: Node) -> Node:
    return change if base is None else merged(base, change)


def _renamed(base: Node, change: Node) -> bool:
    old, new = base.child("name"), change.child("name")
    return old is not None and new is not None and old.plain() != new.plain()


def overridden(tree: Node, override: str) -> Node:
    """The tree with one ``dotted.key=value`` laid over it; the value is read as YAML 1.2.

    Raises:
        ConfigError: there is no ``=``, a key is empty, the value is no YAML or missing, or the path runs
            through a value that is no mapping or beyond the end of a list.
    """
    path, equals, text = override.partition("=")
    keys = path.strip().split(".")
    if not equals and override.endswith((".yaml", ".yml")):
        raise _refused("", f"{override} is a second file, and a run has one.", "Name one that `extends` the other.")
    if not equals or not all(keys):
        raise _refused("", f"the override {override!r} is not of the form key=value.", _EXAMPLE)
    if path.startswith("-"):
        raise _refused("", f"the override {override!r} begins with a dash.", f"Leave the dashes out. {_EXAMPLE}")
    if not text.strip():
        instead = f"Write {path}=null for no value, or {path}='\"\"' for empty text."
        raise _refused(path, "nothing stands after the `=`.", instead)
    if keys == ["extends"]:
        raise _refused(path, "a base is chosen in the file, not on the command line.", "Write a file that extends it.")
    return _placed(tree, keys, read_value(text, path.strip()), ())


def _placed(node: Node, keys: list[str], change: Node, above: tuple[str, ...]) -> Node:
    if not keys:
        return merged(node, change)
    head, *rest = keys
    path = ".".join((*above, head))
    if isinstance(node.value, list):
        items = list(node.value)
        if not head.isdecimal() or int(head) >= len(items):
            what = f"{'.'.join(above)} is a list of {len(items)}, written at {node.origin}; {head!r} is no place in it."
            instead = f"Count from 0 to {len(items) - 1}." if items else "Write the whole list."
            raise _refused(path, what, instead)
        items[int(head)] = _placed(items[int(head)], rest, change, (*above, head))
        return Node(items, node.origin)
    if node.value is not None and not isinstance(node.value, dict):
        parent = ".".join(above)
        name = f"name: {node.value}, " if isinstance(node.value, str) else ""
        what = f"{parent} is {node.value!r}, written at {node.origin}, and has no keys of its own."
        raise _refused(path, what, f"Write {parent}='{{{name}{head}: …}}'.")
    entries: dict[str, Any] = dict(node.value or {})
    below = entries.get(head)
    if below is None:
        below = Node(None, COMMAND_LINE)
    entries[head] = _placed(below, rest, change, (*above, head))
    return Node(entries, node.origin)


def _refused(path: str, what: str, instead: str, node: Node | None = None) -> ConfigError:
    return ConfigError([Problem(path, what, instead, COMMAND_LINE if node is None else node.origin)])
