"""Draws until there are as many different items as are asked for."""

from collections.abc import Callable, Hashable
from typing import TypeVar

FRUITLESS = 10_000
"""Draws in a row after which the settings hold no further item."""
Item = TypeVar("Item")


def distinct(count: int, draw: Callable[[], tuple[Hashable, Item] | None]) -> list[Item]:
    """``count`` items with different keys, in the order in which they were drawn.

    Args:
        draw: an item after its key; ``None`` where what was drawn is no item.

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
