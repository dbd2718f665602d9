"""The code that a run's file names, found without importing any of it."""

import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.config import RunConfig

_NAMED = re.compile(r"\w+(?:\.\w+)*:\w+(?:\.\w+)*")

Place = tuple[str | int, ...]
"""Of a key in a run's file."""


def named_code(config: RunConfig) -> dict[Place, str]:
    """Where a run's file names a part that is not built in → its ``module:attribute``."""
    parts: dict[Place, Any] = {("environment",): config.environment, ("tools",): config.tools}
    parts |= {("rewards", number, "verifier"): each.verifier for number, each in enumerate(config.rewards)}
    parts |= {("algorithm", kind): part for kind, part in config.algorithm.strategies.items()}
    parts |= {(*place, "generator"): each.generator for place, each in config.data.placed_sources}
    texts = [found for place, part in parts.items() for found in _texts(part, place)]
    return {place: text for place, text in texts if _NAMED.fullmatch(text)}


def _texts(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """All texts and keys in nested mappings and lists: a part may be the option of another, or the key of a mixture."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping | list):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _texts(key, (*place, key))
            yield from _texts(item, (*place, key))


def file_of(module: str) -> Path | None:
    """The file of a module that is imported or can be; ``None`` of what is built into Python, or is not a module."""
    spec = _spec_of(module)
    path = Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None
    return path if path is not None and path.is_file() else None


def _spec_of(module: str) -> ModuleSpec | None:
    if module in sys.modules:
        return sys.modules[module].__spec__
    if not (above := module.rpartition(".")[0]):
        return importlib.util.find_spec(module)
    package = _spec_of(above)
    folders = package and package.submodule_search_locations
    return PathFinder.find_spec(module, folders) if folders else None
