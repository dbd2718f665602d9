"""Is this what was expected? Pure functions on outputs and decoded values, outside of the process that made them.

Two rules:

``livecodebench`` (the default), as LiveCodeBench's own evaluation compares. *Outputs*: the whole is stripped, cut at
line ends, and each line stripped; the numbers of lines must be equal; a line is right when it is the same text, or
when both are lines of numbers that are pairwise equal as exact decimals (``1.0`` is ``1.00``; 1e-7 off is wrong).
*Values*: Python's ``==`` after a tuple became a list at the top level, so ``1 == 1.0 == True``, ``nan`` equals
nothing, and a tuple *inside* a list is not a list.

``apps``, the tolerance of the APPS evaluation without its rungs that pay for a wrong order. *Outputs*: empty lines are
dropped; a line is right when its words are, a word when it is the same text or when both are numbers with
``|a − b| ≤ 1e-8 + 1e-5·|b|``, b expected. *Values*: the same tolerance for floats, and for integers against floats, at
every depth; tuples are lists at every depth; the keys of a dict may be numbers on one side and their digits on the
other, since JSON has no other keys.

Time is linear in the shorter text and in the values, whose size and depth the codec limits.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

Comparison = Literal["livecodebench", "apps"]

RELATIVE, ABSOLUTE = 1e-5, 1e-8
_DEEPEST = 120  # of values; more than the codec lets through


def output_mistake(expected: str, output: str, comparison: Comparison) -> str:
    """Where ``output`` departs from ``expected``; empty where it does not."""
    wanted, written = expected.strip().split("\n"), output.strip().split("\n")
    same: Callable[[str, str], bool] = _same_line
    if comparison == "apps":
        wanted, written = [line for line in wanted if line.strip()], [line for line in written if line.strip()]
        same = _close_line
    for number, (want, line) in enumerate(zip(wanted, written, strict=False), start=1):
        if not same(want.strip(), line.strip()):
            return f"line {number} is {_shown(line)}, not {_shown(want)}"
    if len(wanted) != len(written):
        return f"{len(written)} lines instead of {len(wanted)}"
    return ""


def same_value(expected: Any, value: Any, comparison: Comparison) -> bool:
    """Whether ``value`` is what was ``expected``; both hold nothing but what the codec decodes."""
    if comparison == "apps":
        return _close_value(expected, value, 0)
    try:
        return bool(_listed(value) == _listed(expected))
    except (RecursionError, ArithmeticError):  # a signalling NaN raises when it is compared
        return False


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _same_line(expected: str, line: str) -> bool:
    if expected == line:
        return True
    wanted, written = expected.split(), line.split()
    if len(wanted) != len(written):
        return False
    try:
        return all(Decimal(want) == Decimal(word) for want, word in zip(wanted, written, strict=True))
    except InvalidOperation:  # a word that is not a number, or a signalling NaN
        return False


def _close_line(expected: str, line: str) -> bool:
    wanted, written = expected.split(), line.split()
    return len(wanted) == len(written) and all(map(_close_word, wanted, written))


def _close_word(expected: str, word: str) -> bool:
    if expected == word:
        return True
    try:
        wanted, written = float(expected), float(word)
    except ValueError:
        return False
    # What is beyond the floats is infinite to them: 1e400 would be 1e500.
    return _close(wanted, written) if math.isfinite(wanted) and math.isfinite(written) else _same_line(expected, word)


def _close(expected: float, value: float) -> bool:
    if not (math.isfinite(expected) and math.isfinite(value)):
        return expected == value
    return abs(value - expected) <= ABSOLUTE + RELATIVE * abs(expected)


def _close_value(expected: Any, value: Any, depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    if isinstance(expected, list | tuple) and isinstance(value, list | tuple):
        return len(expected) == len(value) and all(
            _close_value(want, item, depth + 1) for want, item in zip(expected, value, strict=True)
        )
    if isinstance(expected, Mapping) and isinstance(value, Mapping):
        wanted, given = _by_text(expected), _by_text(value)
        return wanted.keys() == given.keys() and all(
            _close_value(want, given[key], depth + 1) for key, want in wanted.items()
        )
    numbers = isinstance(expected, int | float) and isinstance(value, int | float)
    if numbers and (isinstance(expected, float) or isinstance(value, float)):
        try:
            return _close(float(expected), float(value))
        except OverflowError:  # an integer beyond the range of floats
            return False
    try:
        return bool(expected == value)
    except (RecursionError, ArithmeticError):
        return False


def _by_text(mapping: Mapping[Any, Any]) -> dict[Any, Any]:
    """Number keys as the digits that JSON writes; other keys as they are. No key where two became one."""
    named = {str(key) if type(key) is int and abs(key) < 1 << 63 else key: item for key, item in mapping.items()}
    return named if len(named) == len(mapping) else dict(mapping)


def _shown(text: str, width: int = 60) -> str:
    text = text.strip()
    return repr(text if len(text) <= width else text[:width] + "…")
