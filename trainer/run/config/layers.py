"""A run's tree from its layers: the base it extends, its own file, the overrides of the command line.

Mappings merge key by key; lists and scalars replace. A mapping whose ``name`` differs from that of the mapping below it
replaces it whole, so that the options of another strategy do not leak in. A run's own ``name`` and ``output_dir`` are
never inherited: two experiments on one baseline must not write into the same directory.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenkeel.errors import COMMAND_LINE, Problem, Refusal, suggest
from evenkeel.trainer.run.config.file_kinds import RUN, check_kind
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.shipped import CONFIGS
from evenkeel.trainer.run.config.yaml_document import Node, read_file, read_value

_NOT_INHERITED = ("name", "output_dir")
_EXAMPLE = "Write it like trl.learning_rate=1e-6, rewards.0.weight=2 or algorithm.advantage='{name: rloo}'."


def layered(path: Path, overrides: Sequence[str]) -> Node:
    """The merged tree of a file, the one base that it may extend, and the overrides in their order.

    Raises:
        Refusal: a file cannot be read, the base extends another, or overrides are malformed (all are reported).
    """
    tree = read_file(path)
    check_kind(tree, RUN)
    tree = extended(tree)
    problems: list[Problem] = []
    for override in overrides:
        try:
            tree = overridden(tree, override)
        except Refusal as error:
            problems.extend(error.problems)
    if problems:
        raise Refusal(problems=problems)
    return tree


def extended(tree: Node) -> Node:
    """The tree over the one base that its ``extends`` names, by the rule at the top of this file.

    Raises:
        Refusal: there is no such file, it cannot be read, or it extends another.
    """
    extends = tree.child("extends")
    if extends is None:
        return tree
    if not isinstance(extends.value, str) or not extends.value:
        what = f"is {extends.plain()!r}, not the name of a file."
        raise config_error("no-base", "extends", what, "Name one YAML file.", extends.origin)
    base_path = extends.origin.folder / extends.value
    if not os.path.isfile(base_path) and os.path.isfile(shipped := CONFIGS.parent / extends.value):  # noqa: PTH113
        base_path = shipped
    if not os.path.isfile(base_path):  # noqa: PTH113 pathlib raises for a name that is too long
        there = sorted(file.name for file in base_path.parent.glob("*.yaml"))
        instead = suggest(base_path.name, there, "The path is relative to the file that says `extends`.")
        raise config_error("no-base", "extends", f"there is no file {base_path}.", instead, extends.origin)
    base = read_file(base_path)
    if (further := base.child("extends")) is not None:
        what = f"{base_path} itself extends {further.plain()!r}, and only one level is read."
        instead = "Extend that file directly, or write its lines into the base."
        raise config_error("second-base", "extends", what, instead, extends.origin)
    inherited = Node({key: node for key, node in base.value.items() if key not in _NOT_INHERITED}, base.origin)
    own = Node({key: node for key, node in tree.value.items() if key != "extends"}, tree.origin)
    return _over(inherited, own)


def merged(base: Node, change: Node) -> Node:
    """``change`` laid over ``base`` by the rule at the top of this file."""
    if not isinstance(base.value, dict) or not isinstance(change.value, dict):
        return change
    old, new = base.child("name"), change.child("name")
    if old is not None and new is not None and old.plain() != new.plain():
        return change
    return _over(base, change)


def _over(base: Node, change: Node) -> Node:
    below = base.value
    above = {key: merged(below[key], node) if key in below else node for key, node in change.value.items()}
    return Node({**below, **above}, change.origin)


def overridden(tree: Node, override: str) -> Node:
    """The tree with one ``dotted.key=value`` laid over it; the value is read as YAML 1.2.

    Raises:
        Refusal: there is no ``=``, a key is empty, the value is missing or not YAML, or the path runs through a
            value that is not a mapping or beyond the end of a list.
    """
    path, equals, text = override.partition("=")
    keys = path.strip().split(".")
    if not equals and override.endswith((".yaml", ".yml")):
        what = f"{override} is a second file, and a run has one."
        raise config_error("second-file", "", what, "Write one that `extends` the other.", COMMAND_LINE)
    if not equals or not all(keys):
        what = f"the override {override!r} does not have the form key=value."
        raise config_error("bad-override", "", what, _EXAMPLE, COMMAND_LINE)
    if path.startswith("-"):
        what = f"the override {override!r} begins with a dash."
        raise config_error("bad-override", "", what, f"Leave the dashes out. {_EXAMPLE}", COMMAND_LINE)
    if not text.strip():
        instead = f"Write {path}=null for no value, or {path}='\"\"' for empty text."
        raise config_error("bad-override", path, "there is nothing after the `=`.", instead, COMMAND_LINE)
    if keys == ["extends"]:
        what = "a base is chosen in the file, not on the command line."
        raise config_error("bad-override", path, what, "Write a file that extends it.", COMMAND_LINE)
    return _placed(tree, keys, read_value(text, path.strip()), ())


def _placed(node: Node, keys: list[str], change: Node, above: tuple[str, ...]) -> Node:
    """``node``, which is at the place ``above``, with ``change`` at the place ``keys`` below it."""
    if not keys:
        return merged(node, change)
    (head, *rest), here = keys, ".".join(above)
    path = ".".join((*above, head))
    if isinstance(node.value, list):
        items = list(node.value)
        if not head.isdecimal() or int(head) >= len(items):
            what = f"{here} is a list of {len(items)}, written at {node.origin}, and {head!r} is not a place in it."
            instead = f"Count from 0 to {len(items) - 1}." if items else "Write the whole list."
            raise config_error("bad-place", path, what, instead, COMMAND_LINE)
        items[int(head)] = _placed(items[int(head)], rest, change, (*above, head))
        return Node(items, node.origin)
    if node.value is not None and not isinstance(node.value, dict):
        name = f"name: {node.value}, " if isinstance(node.value, str) else ""
        what = f"{here} is {node.value!r}, written at {node.origin}, and has no keys of its own."
        raise config_error("bad-place", path, what, f"Write {here}='{{{name}{head}: …}}'.", COMMAND_LINE)
    entries: dict[str, Any] = dict(node.value or {})
    entries[head] = _placed(entries.get(head) or Node(None, COMMAND_LINE), rest, change, (*above, head))
    return Node(entries, node.origin)


def flattened(tree: Any, path: str = "") -> dict[str, Any]:
    """A nested mapping as dotted key → value; lists are values, and so is an empty mapping."""
    if isinstance(tree, Mapping) and tree:
        inner = ((f"{path}.{name}" if path else str(name), child) for name, child in tree.items())
        return {key: value for name, child in inner for key, value in flattened(child, name).items()}
    return {path: tree}
