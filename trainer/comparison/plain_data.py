"""What goes into a JSON file: NaN and infinities are no JSON, and stand there as null."""

import math
from typing import Any


def plain_data(value: Any) -> Any:
    """The same dictionaries and lists; tuples as lists, and ``None`` for each number that is not finite."""
    if isinstance(value, dict):
        return {key: plain_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
