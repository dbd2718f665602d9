"""What goes into a JSON file: NaN and infinities are no JSON, and stand there as null."""

import math
from collections.abc import Mapping
from typing import Any


def plain_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same dictionaries and lists; tuples as lists, and ``None`` for each number that is not finite."""
    return {key: _plain(value) for key, value in data.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return plain_data(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
