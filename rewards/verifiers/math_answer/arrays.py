r"""Matrices and vectors: ``\begin{pmatrix}``, ``[[1,2],[3,4]]``, a factor before one, a transpose, ``3\hat{i}``."""

import re
from collections.abc import Callable

from rewards.verifiers.math_answer.forms import Expression, Form, Matrix, Number, Row
from rewards.verifiers.math_answer.notation import UNIT_VECTOR, matching_end, split_outside_brackets

_MATRIX = re.compile(r"\\begin ?\{([pbB]?matrix|smallmatrix|array)\} ?(?:\{[lcr| ]*\})?(.*)\\end ?\{\1\}", re.DOTALL)
_TRANSPOSE = re.compile(r"\^ ?\{? ?(?:T|\\top|\\intercal|\\text ?\{ ?T ?\}) ?\}?$")
_COMMA = re.compile(",")
_TERM = re.compile(rf"(?P<sign>[+-]?)(?P<factor>[^+]*?){UNIT_VECTOR.pattern}")


def matrix(text: str, form: Callable[[str], Form]) -> Form | None:
    """A matrix, with ``form`` reading its entries."""
    if transpose := _TRANSPOSE.search(text):
        whole = matrix(text[: transpose.start()].strip(), form)
        return Matrix(tuple(zip(*whole.rows, strict=True))) if isinstance(whole, Matrix) and _is_full(whole) else None
    factor, begin, rest = text.partition("\\begin")
    if factor.strip("([ ") and begin:
        whole, scale = matrix(begin + rest, form), form(_factor(factor))
        return _scaled(scale, whole) if isinstance(whole, Matrix) else None
    if text.startswith("[") and text.endswith("]") and matching_end(text, 0) == len(text):
        rows = [piece.strip() for piece in split_outside_brackets(text[1:-1], _COMMA)]
        if all(row.startswith("[") and row.endswith("]") for row in rows):
            return Matrix(tuple(tuple(map(form, split_outside_brackets(row[1:-1], _COMMA))) for row in rows))
    inner = text[1:-1] if text[0] + text[-1] in ("()", "[]") else text
    match = _MATRIX.fullmatch(inner.strip())
    if match is None:
        return None
    lines = [line for line in re.split(r"\\\\|\\cr(?![a-zA-Z])", match[2]) if line.strip()]
    return Matrix(tuple(tuple(form(entry) for entry in line.split("&")) for line in lines))


def unit_vectors(text: str, form: Callable[[str], Form]) -> Form | None:
    """``3\\hat{i} - \\hat{k}`` as (3, 0, −1); two coordinates where there is no third."""
    if UNIT_VECTOR.search(text) is None:
        return None
    text = text.replace(" ", "")
    coordinates: dict[str, Form] = {}
    position = 0
    for term in _TERM.finditer(text):
        factor = form(_factor(term["sign"] + term["factor"]))
        if term.start() != position or (position and not term["sign"]) or term["axis"] in coordinates:
            return None
        coordinates[term["axis"]], position = factor, term.end()
    if position != len(text):
        return None
    zero = form("0")
    return Row(tuple(coordinates.get(axis, zero) for axis in ("ijk" if "k" in coordinates else "ij")), is_vector=True)


def _factor(text: str) -> str:
    """What stands before a matrix or a unit vector; 1 where nothing does."""
    text = text.strip().removesuffix("\\cdot").strip()
    return f"{text}1" if text in ("", "+", "-") else text


def _is_full(whole: Matrix) -> bool:
    return len({len(row) for row in whole.rows}) == 1


def _scaled(scale: Form, whole: Matrix) -> Matrix | None:
    rows = [[_product(scale, entry) for entry in row] for row in whole.rows]
    known = [tuple(entry for entry in row if entry is not None) for row in rows]
    return Matrix(tuple(known)) if [len(row) for row in known] == [len(row) for row in rows] else None


def _product(scale: Form, entry: Form) -> Form | None:
    match scale, entry:
        case Number(unit=""), Number(unit=""):
            return Number(scale.value * entry.value, is_fraction=scale.is_fraction or entry.is_fraction)
        case ((Number(unit="") | Expression(unit="")), (Number(unit="") | Expression(unit=""))):
            return Expression(f"({scale.latex})({entry.latex})")
    return None
