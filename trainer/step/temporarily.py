"""Attributes that hold something else for a while."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def temporarily(target: Any, changed: Mapping[str, Any]) -> Iterator[None]:
    """``target``, an object or a module, with ``changed`` attributes inside; afterwards as before, come what may."""
    before = {name: getattr(target, name) for name in changed}
    try:
        vars(target).update(changed)
        yield
    finally:
        vars(target).update(before)
