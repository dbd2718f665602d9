"""Drawing until enough different items are found."""

from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

FRUITLESS = 10_000
"""Draws in a row without a new item after which no more are expected: then about 1 in 1,000 of the space is left."""
Item = TypeVar("Item")


def distinct(count: int, draw: Callable[[], tuple[Hashable, Item] | None]) -> Iterator[Item]:
    """``count`` items with different keys, each before the next is drawn.

    Args:
        draw: returns (key, item), or ``None`` for a draw to be ignored.

    Raises:
        ValueError: 10,000 draws in a row gave no new one.
    """
    found = set[Hashable]()
    fruitless = 0
    while len(found) < count:
        drawn = draw()
        if drawn is not None and drawn[0] not in found:
            found.add(drawn[0])
            fruitless = 0
            yield drawn[1]
        elif (fruitless := fruitless + 1) == FRUITLESS:
            what = f"only {len(found)} of {count} different rows were found with these options."
            raise ValueError(f"{what} Ask for fewer, or for larger numbers.")
