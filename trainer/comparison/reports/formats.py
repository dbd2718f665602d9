"""Numbers as a report writes them, the same in HTML and in Markdown."""

import math
from typing import Any

from trainer.statistics import Estimate

NOTHING = "–"


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many decimals, or a dash for none."""
    return NOTHING if value is None or not math.isfinite(value) else f"{value:.{digits}f}".replace("-", "−")


def signed(value: float) -> str:
    """A difference with its sign."""
    return number(value) if value < 0 else f"+{number(value)}"


def count(value: float | None) -> str:
    """A number of steps, tokens or seconds."""
    return NOTHING if value is None else f"{value:,.0f}" if value >= 10 else f"{value:g}"


def interval(low_high: Any) -> str:
    """``[low, high]``, of an estimate or a pair; empty where there is none."""
    low, high = (low_high.low, low_high.high) if isinstance(low_high, Estimate) else low_high or (math.nan, math.nan)
    return "" if math.isnan(low) else f"[{number(low)}, {number(high)}]"


def p_value(value: float) -> str:
    """A p with three digits that say something."""
    return NOTHING if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3g}"
