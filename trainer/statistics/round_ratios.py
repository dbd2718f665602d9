"""How many times faster something is, from rounds in which both sides took turns."""

import statistics
from collections.abc import Sequence


def round_ratios(first: Sequence[float], other: Sequence[float]) -> dict[str, float]:
    """Seconds of ``first`` over those of ``other``, each within its round: ``median``, ``least`` and ``most``."""
    ratios = [theirs / mine for theirs, mine in zip(first, other, strict=True)]
    return {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
