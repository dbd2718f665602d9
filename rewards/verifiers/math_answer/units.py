r"""Units, percent, degrees and currency: split from a quantity, and given one name.

A unit is a suffix such as ``\text{ cm}^2``, ``cm``, ``\text{kg}\cdot\text{m/s}``, ``^\circ`` or ``%``, a prefix such as
``$``, or what is counted (``12 \text{ red balls}``). Each of its words stands in a table, `notation.json`: any other
word behind a number may change it (halves, squared), take it back (never) or multiply it (xyz), so that with one the
whole is no quantity.
"""

import re
from collections import Counter

from rewards.verifiers.math_answer.notation import NOTATION

PERCENT, DEGREE = "percent", "degree"

_NAMES = {
    spelling: name for name, others in NOTATION["units"].items() for spelling in (name, name + "s", *others.split())
}
_CURRENCIES: dict[str, str] = NOTATION["currencies"]
_COUNTED: dict[str, str] = {
    **{word + "s": word for word in NOTATION["counted"]["plural"].split()},  # 16 square, 5 prime would say more
    **{
        form: word
        for word in NOTATION["counted"][""].split()
        for form in (word, word + "s", word + "es", re.sub("y$", "ies", word))
    },
    **{form: word for word, forms in NOTATION["counted"]["irregular"].items() for form in (word, *forms.split())},
}
_ADJECTIVES = frozenset(NOTATION["counted"]["adjective"].split())
_STUFF = "|".join(NOTATION["counted"]["stuff"].split())
_NO_NAMES = {"unit", "units"}  # "5 units" says no more than "5"
_WORD = r"[A-Za-z]+\.?(?:\^-?[1-9])?"
_PHRASE = re.compile(rf"{_WORD}(?:[ /(-]{{1,4}}{_WORD}){{0,6}}\)?")
_OF = re.compile(rf"^((?:[a-z]+ )*(?!percent|degree)[a-z]+) of (?:{_STUFF}|(?P<counted>[a-z]+))$")
_BEHIND = re.compile(
    r"(?: |^)(?:(?:in )?total|in all|altogether|left|remaining)$"
    r"|(?<=[a-z]) (?:old|long|wide|tall|deep|high|later|from now)$"
)
_PART = re.compile(rf"/|[()]|{_WORD}")
_POWER = r" ?\^ ?(?:\{ ?-?[1-9] ?\}|-?[1-9])"
_TEXT = rf"\\text ?\{{[^{{}}]*(?:\^\{{-?\d\}}[^{{}}]*)*\}}(?:{_POWER})?"
_TEXT_SUFFIX = re.compile(rf"(?P<rest>.*?\S)\s*(?P<unit>{_TEXT}(?: ?(?:\\cdot|/)? ?{_TEXT})*)", re.DOTALL)
_QUOTIENT = re.compile(rf"\\frac ?\{{ ?({_TEXT}) ?\}} ?\{{ ?({_TEXT}(?: ?(?:\\cdot)? ?{_TEXT})*) ?\}}$")
_SPACED_SUFFIX = re.compile(r"(?P<rest>.*[\d}]) (?P<unit>[A-Za-z][A-Za-z^{}0-9/ .-]*)")
_CLOSE_SUFFIX = re.compile(  # what is hardly a product of letters, as 3mg, 3ms and 3ha are
    rf"(?P<rest>.*\d)(?P<unit>(?:[ckm]m|kg|mph|mins?|secs?|hrs|lbs)(?:{_POWER})?)"
    rf"|(?P<root>.*\}})(?P<length>[ckm]m(?:{_POWER})?)"
)
_OHM = re.compile(r"(?<=[\d} ])\\Omega$|\\text ?\{ ?\\Omega ?\}$")
_TEMPERATURE = re.compile(r"(?P<rest>.*)\^\\circ ?(?P<scale>C|F|\\text ?\{[CF]\})?")


def split_unit(text: str) -> tuple[str, str] | None:
    """What is measured and its unit's name, of a text in the spelling of `one_spelling`; ``None`` without a unit.

    The name is empty for a unit that says nothing ("units").
    """
    for symbol, name in _CURRENCIES.items():
        if text.startswith(symbol):
            return text.removeprefix(symbol).strip(), name
        if text.startswith("-" + symbol):
            return "-" + text.removeprefix("-" + symbol).strip(), name
        if text.endswith(symbol):
            return text.removesuffix(symbol).strip(), name
    if text.endswith("%"):
        return text[:-1].strip(), PERCENT
    if (match := _TEMPERATURE.fullmatch(text)) and match["rest"].strip():
        scale = (match["scale"] or "").replace("\\text", "").strip(" {}")
        return match["rest"].strip(), {"C": "celsius", "F": "fahrenheit"}.get(scale, DEGREE)
    return _word_suffix(_QUOTIENT.sub(r"\1/(\2)", _OHM.sub(r"\\text{ohm}", text)))


def _word_suffix(text: str) -> tuple[str, str] | None:
    rest, slash, divisor = text.partition("/(\\text")  # of a quotient in words
    if match := _TEXT_SUFFIX.fullmatch(rest):
        name = unit_name(match["unit"] + slash + divisor)
        return None if name is None else (match["rest"], name)
    match = _SPACED_SUFFIX.fullmatch(text) or _CLOSE_SUFFIX.fullmatch(text)
    if match is None:
        return None
    found = {key: value for key, value in match.groupdict().items() if value is not None}
    rest, unit = found.get("rest") or found["root"], found.get("unit") or found["length"]
    name = unit_name(unit)
    return None if name is None else (rest, name)


def unit_name(words: str) -> str | None:
    r"""One name for the spellings of a unit; empty for "units"; ``None`` of what is no unit.

    Products and quotients become powers in one order: ``m/s^2``, ``m s^{-2}`` and "meters per second squared" are
    ``meter second^-2``.
    """
    words = words.replace("}{", "} {").replace("\\cdot", " ")
    words = re.sub(r"\\text|[{}]", "", re.sub(r"\\mu ?", "u", words))
    words = re.sub(r" ?\^ ?", "^", " ".join(words.split())).rstrip(".")
    if not _PHRASE.fullmatch(words):
        return None
    words = re.sub(r"\b(?:un)?ordered pairs?\b|\bpairs?(?= of )", "tuple", words)  # 5 pairs alone may be 10
    if of := _OF.match(words):
        words = of[1] if of["counted"] is None or of["counted"] in _COUNTED else words
    words = re.sub(r"\blight[ -]years?\b", "lightyear", _BEHIND.sub("", words))
    words = re.sub(r"\bper\b|(?<=[a-z]) an?(?= [a-z])", "/", re.sub(r"\bsq(uare)?\b\.?", "square", words))
    words = re.sub(r"square ([A-Za-z]+)|([A-Za-z]+) squared", r"\1\2^2", words)
    words = re.sub(r"cubic ([A-Za-z]+)|([A-Za-z]+) cubed", r"\1\2^3", words)
    powers = _powers(words)
    if powers is None or (powers.keys() <= _NO_NAMES and len(powers) < 2):
        return None if powers is None else ""
    return " ".join(name if power == 1 else f"{name}^{power}" for name, power in sorted(powers.items()))


def _powers(words: str) -> Counter[str] | None:
    """The powers of units; ``None`` with a word that is none."""
    powers: Counter[str] = Counter()
    sign, in_brackets, is_left_open = 1, False, False
    for part in _PART.findall(words):
        if part == "/":
            sign = -1
        elif part in "()":
            in_brackets = part == "("
        else:
            word, _, power = part.partition("^")
            word = word.rstrip(".")
            name = _measure(word) or (None if power else _COUNTED.get(word.lower()))
            is_left_open = name is None
            if is_left_open and (power or word.lower() not in _ADJECTIVES):
                return None
            name = name or word.lower()
            above, _, below = name.partition("/")
            powers[above] += sign * int(power or 1)
            powers[below] -= sign * int(power or 1)
        if part not in "/(" and not in_brackets:
            sign = 1
    powers.pop("", None)
    return None if is_left_open else powers


def _measure(word: str) -> str | None:
    """The one name of a unit; only a word may be in capitals, since 5M is no length."""
    if word.lower() in _NO_NAMES:
        return "unit"
    return _NAMES.get(word) or (_NAMES.get(word.lower()) if len(word) > 2 else None)
