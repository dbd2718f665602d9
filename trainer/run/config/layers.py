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
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.shipped import CONFIGS
from evenkeel.trainer.run.config.yaml_document import Node, read_file, read_value

_NOT_INHERITED = ("name", "output_dir")


def layered(path: Path, overrides: Sequence[str]) -> Node:
    """The merged tree of a file, the one base that it may extend, and the overrides in their order.

    Raises:
        Refusal: a file cannot be read, the base extends another, or overrides are malformed (all are reported).
    """
    return all_over(extended(read_file(path)), overrides)


def all_over(tree: Node, overrides: Sequence[str]) -> Node:
    """The tree with overrides laid over it in their order; raises as `layered` does."""
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
    """The tree over the one base that its ``extends`` names, by the rule at the top of this file; see `layered`."""
    extends = tree.child("extends")
    if extends is None:
        return tree
    base = extends.origin.folder / str(extends.plain())
    if not os.path.isfile(base):
        base = CONFIGS.parent / str(extends.plain())
    if not os.path.isfile(base):
        nearest = suggest(base.name, sorted(file.name for file in extends.origin.folder.glob("*.yaml")))
        what = f"is {extends.plain()!r:.60}, and there is no such file."
        raise config_error("no-base", "extends", what, nearest, extends.origin)
    below = read_file(base)
    if below.child("extends") is not None:
        what = f"{base} extends another file, and only one level is read."
        raise config_error("second-base", "extends", what, "Extend that one.", extends.origin)
    inherited = Node({key: node for key, node in below.value.items() if key not in _NOT_INHERITED}, below.origin)
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
    if not text.strip() or not all(keys) or path.startswith("-") or keys == ["extends"]:
        instead = "Write `extends` in a file." if keys == ["extends"] else ""
        if equals and not text.strip():
            instead = f"Write {path.strip()}=null for no value."
        what = f"{override!r} is not a setting key=value."
        raise config_error("bad-override", "", what, instead, COMMAND_LINE)
    return _placed(tree, keys, read_value(text, path.strip()), ())


def _placed(node: Node, keys: list[str], change: Node, above: tuple[str, ...]) -> Node:
    """``node``, whose path is ``above``, with ``change`` laid over what is at ``keys`` below it."""
    if not keys:
        return merged(node, change)
    head, *rest = keys
    here = (*above, head)
    if isinstance(node.value, list) and head.isdecimal() and int(head) < len(node.value):
        items = list(node.value)
        items[int(head)] = _placed(items[int(head)], rest, change, here)
        return Node(items, node.origin)
    if node.value is not None and not isinstance(node.value, dict):
        what = f"{'.'.join(above)} is {node.plain()!r:.60}, written at {node.origin}, and has no {head}."
        raise config_error("bad-place", ".".join(here), what, "Write it whole.", COMMAND_LINE)
    entries: dict[str, Any] = dict(node.value or {})
    entries[head] = _placed(entries.get(head) or Node(None, COMMAND_LINE), rest, change, here)
    return Node(entries, node.origin)


def changes(before: Any, now: Any) -> list[str]:
    """A line for each setting of two mappings that differs: ``trl.beta: 0.0 → 0.1``."""
    old, new = flattened(before), flattened(now)
    differing = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    return [f"{key}: {old.get(key, 'absent')!r} → {new.get(key, 'absent')!r}" for key in differing]


def flattened(tree: Any, path: str = "") -> dict[str, Any]:
    """A nested mapping as dotted key → value; lists are values, and so is an empty mapping."""
    if isinstance(tree, Mapping) and tree:
        inner = ((f"{path}.{name}" if path else str(name), child) for name, child in tree.items())
        return {key: value for name, child in inner for key, value in flattened(child, name).items()}
    return {path: tree}
