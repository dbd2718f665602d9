"""Comparison of outputs and decoded values with expected ones, outside of the process that made them.

The rules are LiveCodeBench's. *Outputs*: the whole is stripped, split at line ends, and each line stripped; the numbers
of lines must be equal; a line is right when it is the same text, or when both are lines of numbers that are
pairwise equal as exact decimals (``1.0`` is ``1.00``; 1e-7 off is wrong). *Values*: Python's ``==`` once a tuple is
a list at the top level, so ``1 == 1.0 == True``, ``nan`` equals nothing, and a tuple *inside* a list is not a list.

Time is linear in the shorter text and in the values, whose size and depth the codec limits.
"""

from decimal import Decimal, InvalidOperation
from typing import Any


def output_mistake(expected: str, output: str) -> str:
    """The first difference of ``output`` from ``expected``; empty if there is none."""
    wanted, written = expected.strip().split("\n"), output.strip().split("\n")
    for number, (want, line) in enumerate(zip(wanted, written, strict=False), start=1):
        if not _same_line(want.strip(), line.strip()):
            return f"line {number} is {shown(line.strip())}, not {shown(want.strip())}"
    if len(wanted) != len(written):
        return f"{len(written)} lines instead of {len(wanted)}"
    return ""


def same_value(expected: Any, value: Any) -> bool:
    """True if ``value`` equals ``expected``; both must be values that the codec decodes."""
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


def shown(value: Any) -> str:
    """``value`` as text for people, cut at 80 characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # more digits than Python writes out
        text = f"a {type(value).__name__} too long to write"
    return text if len(text) <= 80 else text[:80] + "…"
