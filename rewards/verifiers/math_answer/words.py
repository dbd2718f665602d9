"""Answers in words: names, choices, times of day, yes and no, and sentences with mathematics in them."""

import re
from collections.abc import Callable
from itertools import zip_longest

from rewards.verifiers.math_answer.forms import Form, Prose, unreadable_part
from rewards.verifiers.math_answer.notation import NOTATION, balanced, split_outside_brackets, without_spaces

FUNCTIONS = frozenset(NOTATION["functions"].split())
_UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()  # noqa: SIM905 — as lists they would be thirty lines
_TENS = """twenty thirty forty fifty sixty seventy eighty ninety""".split()  # noqa: SIM905
NUMBERS = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
    **{
        f"{ten} {one}": 10 * i + j
        for i, ten in enumerate(_TENS, start=2)
        for j, one in enumerate(_UNITS[1:10], start=1)
    },
    **{"hundred": 100, "one hundred": 100, "thousand": 1000, "one thousand": 1000},
}
_SAID_IN_SHORT = {"dne": "does not exist"}
_SHORT_WORDS = frozenset({"no", "on", "up"})
_TIME_OR_RATIO = re.compile(r"\d+(?: ?: ?\d+)+(?: ?[ap]m)?")
_TEXT = re.compile(r"\\text ?\{([^{}]*)\}")
_VERDICTS = {
    spelling: spellings[0]
    for spellings in (
        ("diverge", "divergent", "doe not converge", "not convergent"),
        ("converge", "convergent"),
        ("converge absolutely", "absolutely convergent", "absolutely converge"),
        ("doe not exist",),
        ("converge conditionally", "conditionally convergent", "conditionally converge"),
    )
    for spelling in spellings
}
_BY_A_TEST = re.compile(r" by (?:\w+ ){0,3}(?:test|comparison)$")
_OF_A_SERIES = frozenset(
    ["serie", "series", "integral", "sequence", "sum", "improper", "infinite", "given", "this", "it", "is", "limit"]
)
_RUN = re.compile(r"[A-Za-z]+")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}(?:'[a-z]+)?")
_COMMA = re.compile("[,;]")
_NO_WORDS = re.compile(r"[\\=<>^_{}+*/|,;\[\]]")


def words_in(text: str) -> str | None:
    r"""The words of a text in the spelling of `notation.one_spelling`, in one spelling; ``None`` where it is no words.

    ``\text{…}`` holds words; without it a run of letters is a word where it is no product of variables by the look of
    it: three letters or more, not in alphabetical order, no function's name. Case, articles, hyphens, full stops and a
    plural's s do not count; the case of a single letter does.
    """
    plain = " ".join(_TEXT.sub(r" \1 ", text).split())
    lowered = " ".join(plain.lower().replace(".", "").split())
    lowered = re.sub(r"(?<=\d) to (?=\d)", ":", re.sub(r"^(\d{1,2}) ?(?=[ap]m$)", r"\1:00 ", lowered))
    lowered = _SAID_IN_SHORT.get(lowered, lowered)
    if _TIME_OR_RATIO.fullmatch(lowered):
        return lowered.replace(" ", "")
    choice = re.sub(r"^(?:option|choice) ", "", plain, flags=re.IGNORECASE).strip("() .")
    if len(choice) == 1 and "A" <= choice <= "Z":
        return choice
    outside = _TEXT.sub(" ", text)
    if plain.startswith("-") or _NO_WORDS.search(plain) or any(character.isdigit() for character in plain):
        return None
    in_text = any(len(run) > 1 for content in _TEXT.findall(text) for run in _RUN.findall(content))
    if not in_text and not any(_looks_like_a_word(run) for run in _RUN.findall(outside)):
        return None
    words = [_without_plural(word) for word in re.sub(r"[-()']", " ", lowered).split()]
    content = [word for word in words if word not in ("a", "an", "the")]
    verdict = _BY_A_TEST.sub("", " ".join(word for word in content if word not in _OF_A_SERIES))
    return _VERDICTS.get(verdict, " ".join(content or words))


def prose(text: str, form: Callable[[str], Form]) -> Form | None:
    r"""A sentence with mathematics in it, in the spelling of `one_spelling`, with ``form`` reading its mathematics.

    A word is a run of two letters or more that is no function's name; a capital at its start and hyphens do not count.
    What stands between words is mathematics, in pieces between commas; what is unreadable of it is compared as text.
    Without words, ``5 \text{ x}``, it is what it is without ``\text``; ``None`` without any ``\text`` either.
    """
    plain = " ".join(re.sub(r"(?<=[A-Za-z]{2})-(?=[A-Za-z]{2})", " ", _TEXT.sub(r" \1 ", text)).split())
    words = [match for match in _WORD.finditer(plain) if match[0].lower() not in FUNCTIONS]
    if not words:
        return None if plain == text else form(plain)
    pieces: list[str | Form] = []
    ends = [0, *(match.end() for match in words)]
    for end, word in zip_longest(ends, words):
        for piece in split_outside_brackets(plain[end : word.start() if word else None], _COMMA):
            if stripped := piece.strip(" .:"):
                read = form(stripped) if balanced(stripped) else None
                pieces.append(_as_text(stripped) if read is None or unreadable_part(read) else read)
        if word:
            pieces.append(word[0].lower() if word[0][1:].islower() else word[0])
    return Prose(tuple(pieces))


def _as_text(piece: str) -> str:
    """A piece without the spaces and braces that may be left out: ``\\pmod{4}`` is ``\\pmod 4``."""
    return re.sub(r"\{(\w)\}", r"\1", without_spaces(piece))


def _looks_like_a_word(run: str) -> bool:
    low = run.lower()
    if low in _SHORT_WORDS:
        return True
    return len(low) >= 3 and low not in FUNCTIONS and list(low) != sorted(set(low))


def _without_plural(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
