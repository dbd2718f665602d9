"""Errors about rows, and how they name them."""

from collections.abc import Sequence

from rewards.registry import Refusal

_MOST_ROWS_NAMED = 10


class DataError(Refusal):
    """Rows that cannot be loaded or trained on; the message says what to write instead, ready to print."""


def rows_named(indices: Sequence[int]) -> str:
    """The first of these rows, and how many more."""
    named = ", ".join(map(str, indices[:_MOST_ROWS_NAMED]))
    more = f" and {len(indices) - _MOST_ROWS_NAMED} more" if len(indices) > _MOST_ROWS_NAMED else ""
    return f"row{'s' if len(indices) > 1 else ''} {named}{more} (counted from 0)"
