"""Names that stand before a value: ``x``, ``f(x)``, ``AB``, ``\\angle ABC``, ``\\sin A``, ``(x, y)``."""

import re

_GREEK = "alpha|beta|gamma|delta|epsilon|theta|lambda|mu|nu|rho|sigma|tau|phi|varphi|psi|omega|ell"
_FUNCTION = r"\\(?:sin|cos|tan|cot|sec|csc|det)"
_ANGLE = rf"(?:[A-Z]|\\(?:{_GREEK}))"  # \sin x = 1 is an equation to solve, \sin A = 1 is what was asked for
_LETTER = rf"(?:[A-Za-z]|\\(?:{_GREEK}))"
_NAME = re.compile(
    rf"(?:m ?)?(?:\\angle ?)?(?:{_LETTER}|\{{ ?{_LETTER} ?\}}|[A-Z]{{2,4}}|\\text ?\{{[A-Za-z ]+\}}(?: ?[A-Z]{{2,4}})?"
    r"|\\(?:overline|vec|hat) ?\{[A-Za-z]+\})(?: ?_ ?(?:\w|\{\w+\}))?'*(?: ?\^ ?\{-1\})?(?: ?\([^()=]{1,20}\))?"
    rf"|{_FUNCTION} ?(?:{_ANGLE}|\( ?{_ANGLE} ?\)|\\angle ?[A-Z]{{1,3}})"
    r"|\( ?[a-z](?: ?, ?[a-z])+ ?\)|\|[A-Z]{2}\||\[[A-Z]{3,6}\]"
)
_INTRODUCTION = re.compile(r"\\text ?\{[^{}]*(?:\b(?:is|are)|[:=]) *\}|(?:the |final )*answer(?: is|:)", re.IGNORECASE)
_INTRODUCED_TEXT = re.compile(r"\\text ?\{ *(?:the |final )*answer(?: is|:) *([^{}]+)\}", re.IGNORECASE)


def is_name(text: str) -> bool:
    """Whether ``text`` names a value and is no expression to solve for something: ``x^2`` and ``2x`` do not."""
    return _NAME.fullmatch(text.strip()) is not None


def squeezed(text: str) -> str:
    """A name in one spelling."""
    return re.sub(r"[\s{}]", "", text)


def without_introduction(text: str) -> str:
    """``text`` without "the answer is" and the like before it."""
    if inside := _INTRODUCED_TEXT.fullmatch(text):
        return inside[1]
    introduction = _INTRODUCTION.match(text)
    if introduction is None or re.search(r"\bnot\b", introduction[0]):
        return text
    return text[introduction.end() :].strip()
