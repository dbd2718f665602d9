"""What is tried on a verifier: its rows' own answers, and texts that answer nothing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evenkeel.rewards.bench.adversarial import FORMS
from evenkeel.rewards.verifier import Verifier

Kind = Literal["gold", "empty", "other row", "echo", "adversarial"]
KINDS: tuple[Kind, ...] = ("gold", "empty", "other row", "echo", "adversarial")

_FORMULA = re.compile(r"\$([^$]{1,200})\$")
_MOST_FORMULAS = 4


@dataclass(frozen=True)
class Row:
    """A question and what its answers are judged against."""

    question: str
    reference: Any


@dataclass(frozen=True)
class Trial:
    """One completion, judged against the reference of one row.

    ``answers`` is the row whose gold answer it is; ``None`` where it answers none.
    """

    kind: Kind
    name: str
    row: int
    completion: str
    answers: int | None = None


def trials(
    verifier: Verifier, rows: Sequence[Row], adversarial: Mapping[str, str], forms: Mapping[str, str] = FORMS
) -> Iterator[Trial]:
    """All that is tried, in the ``forms`` of an answer.

    - **gold**: every row's `Verifier.gold_completion`.
    - **empty**: nothing at all, and nothing in every form of an answer.
    - **other row**: the next gold answer that is another text. It may be the same answer in other words.
    - **echo**: the question in every form of an answer, and each of its first four ``$…$`` formulae in a box, where
      that is not the gold's own text.
    - **adversarial**: each of the given completions against one row, the rows in turn.

    A verifier that reads no reference is tried with *gold*, *empty* and *adversarial* alone.
    """
    golds = [verifier.gold_completion(row.reference) for row in rows]
    for place, (row, gold) in enumerate(zip(rows, golds, strict=True)):
        if gold is not None:
            yield Trial("gold", "gold", place, gold, answers=place)
        yield Trial("empty", "nothing", place, "")
        yield from (Trial("empty", f"nothing ({form})", place, text.format("")) for form, text in forms.items())
        if not verifier.reads_reference:
            continue
        if (other := _another(golds, place)) is not None:
            yield Trial("other row", "another row's gold", place, golds[other] or "", answers=other)
        yield from _echoes(row.question, gold, place, forms)
    for place, (name, completion) in enumerate(adversarial.items()):
        yield Trial("adversarial", name, place % len(rows), completion)


def _another(golds: Sequence[str | None], place: int) -> int | None:
    """The next row, round the end, with another gold answer."""
    following = [*range(place + 1, len(golds)), *range(place)]
    return next((row for row in following if golds[row] not in (None, golds[place])), None)


def _echoes(question: str, gold: str | None, place: int, forms: Mapping[str, str]) -> Iterator[Trial]:
    for form, text in forms.items():
        yield Trial("echo", f"question ({form})", place, text.format(question))
    closely = "".join((gold or "").split())
    for formula in dict.fromkeys(_FORMULA.findall(question)[:_MOST_FORMULAS]):
        if "".join(formula.split()) not in closely:
            yield Trial("echo", f"${formula}$ boxed", place, FORMS["boxed"].format(formula))
