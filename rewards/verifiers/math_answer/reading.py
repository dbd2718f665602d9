"""From text to form: which kind of answer this is, and its parts. Nothing is evaluated but plain numbers."""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from rewards.verifiers.math_answer.arrays import matrix, unit_vectors
from rewards.verifiers.math_answer.cases import cases
from rewards.verifiers.math_answer.congruences import congruence
from rewards.verifiers.math_answer.dates import date, measures
from rewards.verifiers.math_answer.forms import (
    Answer,
    BasedNumber,
    Expression,
    Form,
    Listing,
    Named,
    Number,
    Prose,
    Quantified,
    Unreadable,
    Words,
    unreadable_part,
)
from rewards.verifiers.math_answer.names import split_quantifier, without_introduction
from rewards.verifiers.math_answer.notation import (
    balanced,
    matching_end,
    one_spelling,
    split_outside_brackets,
    without_full_stop,
    without_spaces,
)
from rewards.verifiers.math_answer.numerals import exact_number
from rewards.verifiers.math_answer.relations import named_number, related
from rewards.verifiers.math_answer.sets import (
    COMMA,
    EMPTY_SET,
    REALS,
    SEPARATOR,
    constant,
    either_sign,
    in_braces,
    in_brackets,
    several,
    union,
)
from rewards.verifiers.math_answer.units import DEGREE, split_unit
from rewards.verifiers.math_answer.words import FUNCTIONS, NUMBERS, prose, words_in

_SETS_IN_WORDS: dict[str, Form] = {
    **dict.fromkeys(["no solution", "no real solution", "empty set"], EMPTY_SET),
    **dict.fromkeys(["all real number", "all real"], REALS),
}

_BARE_NUMBER = re.compile(r"-?[0-9]{1,100}(?:\.[0-9]{1,100})?")  # most answers: nothing about them is to be spelled out
_BASED = re.compile(
    r"(?:\(?([0-9A-Fa-f]+|[0-9A-Z]+)\)?|\\text ?\{([0-9A-Z]+)\}) ?_ ?"
    r"(?:(\d)|\{ ?\(?(\d+|\\text ?\{[a-z]+\})\)? ?\}|\\text ?\{([a-z]+)\})"
)
_BASES = {
    word: str(base)
    for base, word in enumerate(["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], start=2)
}
_NEGATIVE = re.compile(r"- ?\( ?(?P<value>[^()+-]*?) ?\)")
_CHOICE = re.compile(r"(\([A-H]\)) +(.*\S)")
_FUNCTION = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)")
_TWO_DIGITS = re.compile(r"[A-Za-z)] ?[\^_] ?-?\d{2}")
_OF_A_SET = re.compile(r"\\(?:max|min|gcd|lcm|sup|inf) ?\\\{")
_CONJUNCTIONS = frozenset({"or", "and", "not", "if", "is", "to"})


def read_beside(gold: str, answer: str) -> tuple[Answer, Answer]:
    """A gold, and an answer to it: a sentence if the gold is one."""
    right = read(gold)
    return right, read(answer, as_prose=isinstance(right.form, Prose))


@lru_cache(maxsize=4096)
def read(text: str, *, as_prose: bool = False) -> Answer:
    """The one reading of ``text``, an answer in LaTeX or as plain text; ``as_prose`` where the gold is a sentence."""
    if _BARE_NUMBER.fullmatch(text):
        return Answer(text, Fraction(text), Number(Fraction(text)))
    spelled = one_spelling(text)
    form = _form(spelled) if balanced(spelled) else Unreadable("its brackets do not pair up")
    if balanced(spelled) and (as_prose or unreadable_part(form)):
        form = prose(spelled, _form) or form
    value = form.value if isinstance(form, Number) and not form.unit else None
    return Answer(without_spaces(spelled), value, form)


def _form(text: str) -> Form:
    text = _bare(text)
    if not text:
        return Unreadable("it is empty")
    if number := _number(text):
        return number
    for reading in (cases, congruence, date, measures):
        if form := reading(text, _form):
            return form
    if quantified := split_quantifier(text):
        value = _form(quantified[0])
        return value if isinstance(value, Unreadable) else Quantified(value, quantified[1])
    if names := _several_words(text):
        return names
    if words := words_in(text):
        return Number(Fraction(NUMBERS[words])) if words in NUMBERS else _SETS_IN_WORDS.get(words, Words(words))
    if (split := split_unit(text)) and (number := _number(*split)):
        return number
    for reading in (
        matrix,
        unit_vectors,
        named_number,
        several,
        _choice,
        constant,
        in_braces,
        in_brackets,
        related,
        union,
        either_sign,
        _based,
        _measured,
    ):
        if (form := reading(text, _form)) is not None:
            return form
    return _expression(text)


def _number(text: str, unit: str = "") -> Number | None:
    value = exact_number(text)
    return None if value is None else Number(value, unit, is_fraction="/" in text or "\\frac" in text)


def _bare(text: str) -> str:
    """Without braces and brackets around a single thing, without "the answer is", without closing punctuation."""
    while True:
        before, text = text, without_introduction(without_full_stop(text).lstrip("= "))
        if text[:1] in ("{", "(") and matching_end(text, 0) == len(text) and text[-1] in "})":
            inner = text[1:-1]
            if text[0] == "{" or not COMMA.search(inner):
                text = inner
        if (match := _NEGATIVE.fullmatch(text)) and exact_number(match["value"]) is not None:  # −(5)
            text = "-" + match["value"]
        if text == before:
            return text


def _several_words(text: str) -> Form | None:
    """``A and C``, ``Alice, Bob``: names or letters that are chosen, in any order."""
    if text.startswith("\\text") and text.endswith("}") and text.count("{") == 1:
        text = text[text.index("{") + 1 : -1]
    pieces = [piece.strip() for piece in split_outside_brackets(text, SEPARATOR) if piece.strip()]
    words = [words_in(piece) for piece in pieces]
    return Listing(tuple(Words(word) for word in words if word)) if len(pieces) > 1 and all(words) else None


def _choice(text: str, form: Callable[[str], Form]) -> Form | None:
    match = _CHOICE.fullmatch(text)
    value = form(match[2]) if match else None
    return Named(match[1], value) if match and isinstance(value, Number | Expression) else None


def _based(text: str, form: Callable[[str], Form]) -> Form | None:
    match = _BASED.fullmatch(text)
    if match is None:
        return None
    base = re.sub(r"\\text|[ {}]", "", match[3] or match[4] or match[5])
    digits = (match[1] or match[2]).upper()
    if digits.isalpha() and not match[2]:  # X_1 is a variable
        return None
    base = _BASES.get(base, base)
    return Number(Fraction(int(digits))) if base == "10" and digits.isdigit() else BasedNumber(digits, base)


def _measured(text: str, form: Callable[[str], Form]) -> Form | None:
    split = split_unit(text)
    if split is None:
        return None
    if split_unit(split[0]) is not None:
        return Unreadable("it has two units")
    measured = form(split[0])
    if split[1] == DEGREE and _FUNCTION.search(split[0]):  # the degrees of \\cos 20^\\circ belong to its argument
        return None
    if isinstance(measured, Expression) and not measured.unit:
        return Expression(measured.latex, split[1])
    return Unreadable("what has this unit is no quantity")


def _expression(text: str) -> Form:
    text = text.lstrip("+ ")
    runs = {run.lower() for run in re.findall(r"(?<![A-Za-z\\])[A-Za-z]+", text)}
    if "\\text" in text or not text.isascii() or runs & _CONJUNCTIONS:
        return Unreadable("it mixes words and mathematics")
    if "?" in text or (any(len(run) > 3 and run not in FUNCTIONS for run in runs) and "\\begin" not in text):
        return Unreadable("it mixes words and mathematics")
    if _TWO_DIGITS.search(re.sub(r"\\[a-zA-Z]+", " ", text)):  # \log_10 has its base
        return Unreadable("x^12 and x_12 are x^1 2 and x_1 2 in LaTeX; x^{12} and x_{12} need braces")
    if "\\{" in _OF_A_SET.sub("", text):  # 2 - \{2\} is not 0, and x - \{x\} no 0 but a floor
        return Unreadable("a set stands where a number would")
    return Expression(text)
