"""The logged numbers of a run, under one name for each metric, whichever trainer wrote it."""

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

NAMES: dict[str, tuple[str, ...]] = {
    "reward": ("reward", "critic/score/mean"),
    "dead_groups": ("frac_reward_zero_std", "groups/frac_dead"),
    "truncated": ("completions/clipped_ratio", "response_length/clip_ratio"),
    "length": ("completions/mean_length", "response_length/mean"),
    "entropy": ("entropy", "actor/entropy", "actor/entropy_loss"),
    "kl": ("kl", "actor/kl_loss", "actor/reward_kl_penalty"),
    "learning_rate": ("learning_rate", "actor/lr"),
    "gradient_norm": ("grad_norm", "actor/grad_norm"),
    "loss": ("loss", "actor/pg_loss"),
}
"""Our name → the names under which TRL (and this project) and verl log it; the first found counts.

``truncated``: the share of completions that reached the token limit. ``dead_groups``: the share of groups whose rewards
are all equal."""

HELD_OUT = (
    re.compile(r"eval[_/][^/]+/(avg@\d+|greedy)"),
    re.compile(r"val-core/.+/mean@\d+"),
    re.compile(r"eval[_/]reward"),
)
"""Names of held-out accuracies: ours, verl's, TRL's. ``held_out`` is the mean over all names of the first kind that a
line holds: over data sets and ways of decoding."""

_MAY_BE_INFINITE = ("gradient_norm", "loss")


def number(value: Any) -> float | None:
    """``value`` as a float, NaN and infinity included, even if JSON holds them as words; ``None`` = no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and value.strip().lstrip("+-").lower() not in ("nan", "inf", "infinity"):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


class Log:
    """The logged numbers of a run up to now, added line by line.

    Attributes:
        values: metric → its numbers in the order of the log. NaN and infinity are kept in
            ``gradient_norm`` and ``loss`` only: elsewhere they mean that there was nothing to measure.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = defaultdict(list)

    def add(self, line: Mapping[str, Any]) -> None:
        """Add one line of the log."""
        found = {name: next((line[key] for key in keys if key in line), None) for name, keys in NAMES.items()}
        numbers = {name: number(value) for name, value in found.items()}
        numbers["held_out"] = _held_out(line)
        for name, value in numbers.items():
            if value is not None and (math.isfinite(value) or name in _MAY_BE_INFINITE):
                self.values[name].append(value)

    def first(self, name: str, lines: int) -> list[float]:
        """The first numbers of a metric; empty where there are fewer than ``lines``."""
        values = self.values.get(name, [])
        return values[:lines] if len(values) >= lines else []

    def last(self, name: str, lines: int) -> list[float]:
        """The newest numbers of a metric; empty where there are fewer than ``lines``."""
        values = self.values.get(name, [])
        return values[-lines:] if len(values) >= lines else []


def _held_out(line: Mapping[str, Any]) -> float | None:
    named = [(key, value) for key, value in line.items() if key.startswith(("eval", "val"))]
    for kind in HELD_OUT if named else ():
        found = [number(value) for key, value in named if kind.fullmatch(key)]
        finite = [value for value in found if value is not None and math.isfinite(value)]
        if finite:
            return sum(finite) / len(finite)
    return None
