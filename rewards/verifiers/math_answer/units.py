r"""Units, percent, degrees and currency: split from a quantity, and given one name.

A unit is a suffix such as ``\text{ cm}^2``, ``cm``, ``\text{kg}\cdot\text{m/s}``, ``^\circ`` or ``%``, a prefix such as
``$``, or any short noun in ``\text`` behind a number (``12 \text{ students}``). Words that could change the value or
offer another one (or, not, half, million …) make the whole no quantity.
"""

import re
from collections import Counter

from rewards.verifiers.math_answer.notation import NOTATION

PERCENT, DEGREE = "percent", "degree"

_NAMES = {
    spelling: name for name, others in NOTATION["units"].items() for spelling in (name, name + "s", *others.split())
}
_CURRENCIES: dict[str, str] = NOTATION["currencies"]
_NO_NAMES = {"unit", "units"}  # "5 units" says no more than "5"
_NO_UNIT = re.compile(
    r"\b(?:or|and|not?|if|is|are|was|be|maybe|perhaps|n?either|nor|else|instead|but|than|then|less|more|about|approximately|"
    r"roughly|around|almost|nearly|over|under|to|half|double|twice|triple|dozen|hundred|thousand|million|billion|"
    r"trillion|one|two|three|four|five|six|seven|eight|nine|ten|plus|minus|times|divided|factorial|mod|base|pi|infinity|"
    r"wrong|right|correct|answer|with|for|all|any|except|only)\b",
    re.IGNORECASE,
)
_WORD = r"[A-Za-z]+\.?(?:\^-?[1-9])?"
_PHRASE = re.compile(rf"{_WORD}(?:[ /(-]{{1,4}}{_WORD}){{0,4}}\)?")
_PART = re.compile(rf"/|[()]|{_WORD}")
_POWER = r" ?\^ ?(?:\{ ?-?[1-9] ?\}|-?[1-9])"
_TEXT = rf"\\text ?\{{[^{{}}]*(?:\^\{{-?\d\}}[^{{}}]*)*\}}(?:{_POWER})?"
_TEXT_SUFFIX = re.compile(rf"(?P<rest>.*?\S)\s*(?P<unit>{_TEXT}(?: ?(?:\\cdot|/)? ?{_TEXT})*)", re.DOTALL)
_QUOTIENT = re.compile(rf"\\frac ?\{{ ?({_TEXT}) ?\}} ?\{{ ?({_TEXT}(?: ?(?:\\cdot)? ?{_TEXT})*) ?\}}$")
_SPACED_SUFFIX = re.compile(r"(?P<rest>.*[\d}]) (?P<unit>[A-Za-z][A-Za-z^{}0-9/ .-]*)")
_CLOSE_SUFFIX = re.compile(
    rf"(?P<rest>.*\d)(?P<unit>[a-z]{{2,3}}(?:{_POWER})?)|(?P<root>.*\}})(?P<length>[ckm]m(?:{_POWER})?)"
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
    if (name := unit_name(unit)) is None:
        return None
    is_known = all(word in _NAMES for word in re.findall(r"[A-Za-z]+", unit))
    return (rest, name) if is_known or re.fullmatch(r"[a-z]{3,}(?: [a-z]{3,}){0,2}", unit) else None


def unit_name(words: str) -> str | None:
    r"""One name for the spellings of a unit; empty for "units"; ``None`` of what is no unit.

    Products and quotients become powers in one order: ``m/s^2``, ``m s^{-2}`` and "meters per second squared" are
    ``meter second^-2``.
    """
    words = re.sub(r"\\text|[{}]", "", words.replace("}{", "} {").replace("\\cdot", " "))
    words = re.sub(r" ?\^ ?", "^", " ".join(words.split())).rstrip(".")
    if not _PHRASE.fullmatch(words) or _NO_UNIT.search(words):
        return None
    words = re.sub(r"\bper\b", "/", re.sub(r"\bsq(uare)?\b\.?", "square", words))
    words = re.sub(r"square ([A-Za-z]+)|([A-Za-z]+) squared", r"\1\2^2", words)
    words = re.sub(r"cubic ([A-Za-z]+)|([A-Za-z]+) cubed", r"\1\2^3", words)
    powers = _powers(words)
    if powers.keys() <= _NO_NAMES and len(powers) < 2:
        return ""
    return " ".join(name if power == 1 else f"{name}^{power}" for name, power in sorted(powers.items()))


def _powers(words: str) -> Counter[str]:
    powers: Counter[str] = Counter()
    sign, in_brackets = 1, False
    for part in _PART.findall(words):
        if part == "/":
            sign = -1
        elif part in "()":
            in_brackets = part == "("
        else:
            word, _, power = part.partition("^")
            above, _, below = _singular(word.rstrip(".")).partition("/")
            powers[above] += sign * int(power or 1)
            powers[below] -= sign * int(power or 1)
        if part not in "/(" and not in_brackets:
            sign = 1
    powers.pop("", None)
    return powers


def _singular(word: str) -> str:
    found: str | None = _NAMES.get(word) or _NAMES.get(word.lower())
    if found:
        return found
    word = word.lower()
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
