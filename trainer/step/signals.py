"""Signals by name, computed once and only when a strategy asks."""

from collections.abc import Iterator, Mapping
from typing import Any


class Signals(Mapping[str, Any]):
    """Name → value; a callable given as a source is called at the first look-up, and its value kept."""

    def __init__(self, **sources: Any) -> None:
        self._sources = sources
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            source = self._sources[name]
            self._values[name] = source() if callable(source) else source
        return self._values[name]

    def add(self, **sources: Any) -> None:
        """More signals, or others in place of those that were given."""
        self._sources |= sources

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)
