"""What a dataset's reference says the right answer is."""

import math
import operator
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from evenkeel.rewards.extraction import boxed_answers, marked_answer
from evenkeel.rewards.verifiers.math_answer import forms
from evenkeel.rewards.verifiers.math_answer.notation import balanced
from evenkeel.rewards.verifiers.math_answer.reading import read

GSM8K_MARK = "####"
_INFINITE: dict[forms.Form, str] = {forms.MINUS_INFINITY: "-\\infty", forms.INFINITY: "\\infty"}


def golds(reference: Any, marked: bool = False) -> tuple[str, ...]:
    r"""The right answers that ``reference`` names, as text; more than one where it lists alternatives.

    A text may be an answer, a solution whose last ``\boxed{…}`` is the answer, or one with the answer after ``####``;
    where ``marked``, after the last marker that `marked_answer` knows: "The answer is 72."

    Raises:
        ValueError: no completion can be scored against it; why, and what to do.
    """
    if isinstance(reference, str | bytes | dict) or not isinstance(reference, Iterable):
        return (_answer_in(written(reference), marked),)
    alternatives = tuple(_answer_in(written(alternative), marked) for alternative in reference)
    if not alternatives:
        raise ValueError("it is an empty list, so no answer is right; remove the row or map another column")
    return alternatives


def plain_wrong_answer(form: forms.Form, place: int = 0) -> str:
    """An answer of a gold's ``form``, so that all of it is compared, with a number that is no one's per value."""
    number = f"\\frac{{{5741 + place}}}{{8191}}"
    match form:
        case forms.Relation(sign=sign):
            return f"x+2y {sign} {number}"
        case forms.Named(value=value) | forms.Quantified(value=value) | forms.Worked(result=value):
            return plain_wrong_answer(value, place)
        case forms.Interval():
            ends = [_INFINITE.get(end) or plain_wrong_answer(end, place) for end in (form.left, form.right)]
            return f"{'(['[form.left_closed]}{ends[0]}, {ends[1]}{')]'[form.right_closed]}"
        case forms.Matrix():
            rows = (" & ".join(plain_wrong_answer(entry, place) for entry in row) for row in form.rows)
            return "\\begin{pmatrix}" + "\\\\".join(rows) + "\\end{pmatrix}"
        case forms.Listing(items=items) | forms.Row(items=items) | forms.Union(pieces=items) if items:
            values = [plain_wrong_answer(item, place + 2 * index) for index, item in enumerate(items)]
            if isinstance(form, forms.Union):
                return f" {form.sign} ".join(values)
            inner = ", ".join(values)
            return f"({inner})" if isinstance(form, forms.Row) else f"\\{{{inner}\\}}" if form.braces else inner
    return number


@lru_cache(maxsize=4096)
def _answer_in(text: str, marked: bool) -> str:
    answer = text
    if marked and (found := marked_answer(text).text) is not None:
        answer = found
    elif "\\boxed" in text:
        answer = boxed_answers(text).text or ""
    elif GSM8K_MARK in text:
        answer = text.rpartition(GSM8K_MARK)[2].strip()
    spelled = read(answer).text
    if not spelled.strip("$., "):
        raise ValueError(f"{text!r:.80} holds no answer; remove the row or map the column that has the answer")
    if not balanced(spelled):
        raise ValueError(f"the brackets of {text!r:.80} do not pair up, so nothing equals it; correct the row")
    return answer


def written(reference: Any) -> str:
    """A text or a number as text, a whole one without ``.0``. Raises ``ValueError``, with what to do, for others."""
    if isinstance(reference, str):
        return reference.strip()
    if isinstance(reference, float):  # NumPy's float64 is one
        if not math.isfinite(reference):
            raise ValueError(f"{float(reference)} is not a finite number; remove the row")
        return str(int(reference)) if reference.is_integer() else repr(float(reference))
    try:
        if isinstance(reference, bool):
            raise TypeError
        return str(operator.index(reference))
    except TypeError as error:
        raise ValueError(
            f"{reference!r:.80} is {type(reference).__name__}, not a text, a number or a list of these; "
            "map the column that has the answer"
        ) from error
