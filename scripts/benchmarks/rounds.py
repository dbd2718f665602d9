"""Rounds in which everything that is compared takes its turn, and how many times faster something was in them."""

import statistics
from collections.abc import Mapping, Sequence


def in_turn(names: Sequence[str], number: int) -> list[str]:
    """``names`` in the order of round ``number``: odd rounds go backwards, each pair of rounds starts with another."""
    start = number // 2 % len(names)
    turned = [*names[start:], *names[:start]]
    return turned[::-1] if number % 2 else turned


def round_ratios(first: Sequence[float], other: Sequence[float]) -> dict[str, float]:
    """Seconds of ``first`` over those of ``other``, each within its round: ``median``, ``least`` and ``most``."""
    ratios = [theirs / mine for theirs, mine in zip(first, other, strict=True)]
    return {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}


def shown_ratio(ratio: Mapping[str, float]) -> str:
    """The median, with the least and the most."""
    return f"{ratio['median']:.2f} [{ratio['least']:.2f}, {ratio['most']:.2f}]"
