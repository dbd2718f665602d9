"""A nested mapping by its dotted keys, as overrides write them."""

from collections.abc import Mapping
from typing import Any


def flattened(tree: Any, path: str = "") -> dict[str, Any]:
    """Dotted key → value; lists are values, and so is an empty mapping."""
    if isinstance(tree, Mapping) and tree:
        inner = ((f"{path}.{name}" if path else str(name), child) for name, child in tree.items())
        return {key: value for name, child in inner for key, value in flattened(child, name).items()}
    return {path: tree}
