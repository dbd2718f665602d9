"""Drawing until enough different items are found."""

from collections.abc import Callable, Hashable
from typing import TypeVar

FRUITLESS = 10_000
"""Draws in a row without a new item after which no more are expected: then about 1 in 1,000 of the space is left."""
Item = TypeVar("Item")


def distinct(count: int, draw: Callable[[], tuple[Hashable, Item] | None]) -> list[Item]:
    """``count`` items with different keys, in the order in which they were drawn.

    Args:
        draw: returns (key, item), or ``None`` for a draw to be ignored.

    Raises:
        ValueError: 10,000 draws in a row gave no new one.
    """
    found: dict[Hashable, Item] = {}
    fruitless = 0
    while len(found) < count:
        drawn = draw()
        if drawn is not None and drawn[0] not in found:
            found[drawn[0]] = drawn[1]
            fruitless = 0
        elif (fruitless := fruitless + 1) == FRUITLESS:
            raise ValueError(
                f"only {len(found)} of {count} different rows were found with these options. Ask for fewer, or for "
                "larger numbers."
            )
    return list(found.values())
