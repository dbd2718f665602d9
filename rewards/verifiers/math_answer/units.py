r"""Units, percent, degrees and currency: split from a quantity, and given one name.

A unit is a suffix such as ``\text{ cm}^2``, ``cm``, ``^\circ`` or ``%``, a prefix such as ``$``, or any short noun in
``\text`` behind a number (``12 \text{ students}``). Words that could change the value or offer another one (or, not,
half, million …) make the whole no quantity.
"""

import re

PERCENT, DEGREE = "percent", "degree"

_SPELLINGS = {
    **{"meter": "m metre metres", "centimeter": "cm centimetre centimetres", "millimeter": "mm", "kilometer": "km"},
    **{"inch": "in inches", "foot": "ft feet", "yard": "yd yds", "mile": "mi", "mile/hour": "mph"},
    **{"second": "s sec secs", "minute": "min mins", "hour": "h hr hrs", "week": "wk", "year": "yr yrs", "day": ""},
    **{"kilogram": "kg kgs", "gram": "g", "milligram": "mg", "pound": "lb lbs", "ounce": "oz"},
    **{"liter": "l L litre litres", "milliliter": "ml mL", "kilometer/hour": "kph kmph"},
    **{"dollar": "USD usd", "cent": "", "euro": "EUR", "degree": "deg", "percent": "percentage pct", "radian": "rad"},
    **{"newton": "N", "joule": "J", "watt": "W", "volt": "V", "ampere": "A amp amps", "kelvin": "K", "hertz": "Hz"},
    **{"person": "people", "child": "children", "man": "men", "woman": "women", "celsius": "C", "fahrenheit": "F"},
}
_NAMES = {spelling: name for name, others in _SPELLINGS.items() for spelling in (name, name + "s", *others.split())}

_SYMBOLS = {"\\$": "dollar", "$": "dollar", "€": "euro", "£": "pound sterling", "¢": "cent"}
_NO_NAMES = {"unit", "units"}  # "5 units" says no more than "5"
_NO_UNIT = re.compile(
    r"\b(?:or|and|not?|if|is|are|was|be|maybe|perhaps|n?either|nor|else|instead|but|than|then|less|more|about|approximately|"
    r"roughly|around|almost|nearly|over|under|to|half|double|twice|triple|dozen|hundred|thousand|million|billion|"
    r"trillion|one|two|three|four|five|six|seven|eight|nine|ten|plus|minus|times|divided|factorial|mod|base|pi|infinity|"
    r"wrong|right|correct|answer|with|for|all|any|except|only)\b",
    re.IGNORECASE,
)
_WORD = r"[A-Za-z]+\.?(?:\^\{?[1-9]\}?)?"
_PHRASE = re.compile(rf"{_WORD}(?:[ /-]{{1,3}}{_WORD}){{0,3}}")
_POWER = r" ?\^ ?\{? ?[23] ?\}?"
_TEXT_SUFFIX = re.compile(rf"(?P<rest>.*\S)\s*\\text ?\{{ *(?P<unit>[^{{}}]*?) *\}}(?P<power>{_POWER})?", re.DOTALL)
_SPACED_SUFFIX = re.compile(r"(?P<rest>.*[\d}]) (?P<unit>[A-Za-z][A-Za-z^{}0-9/ .-]*)")
_CLOSE_SUFFIX = re.compile(rf"(?P<rest>.*\d)(?P<unit>[a-z]{{2,3}}(?:{_POWER})?)")
_QUOTIENT = re.compile(r"\\frac ?\{ ?\\text ?\{ *([^{}]*?) *\} ?\} ?\{ ?\\text ?\{ *([^{}]*?) *\} ?\}$")
_TEMPERATURE = re.compile(r"(?P<rest>.*)\^\\circ ?(?P<scale>C|F|\\text ?\{[CF]\})?")


def split_unit(text: str) -> tuple[str, str] | None:
    """What is measured and its unit's name, of a text in the spelling of `one_spelling`; ``None`` without a unit.

    The name is empty for a unit that says nothing ("units").
    """
    text = _QUOTIENT.sub(r"\\text{\1/\2}", text)
    for symbol, name in _SYMBOLS.items():
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
    return _word_suffix(text)


def _word_suffix(text: str) -> tuple[str, str] | None:
    if match := _TEXT_SUFFIX.fullmatch(text):
        name = unit_name(match["unit"] + re.sub(r"[ {}]", "", match["power"] or ""))
        return None if name is None else (match["rest"], name)
    match = _SPACED_SUFFIX.fullmatch(text) or _CLOSE_SUFFIX.fullmatch(text)
    if match is None or (name := unit_name(match["unit"])) is None:
        return None
    is_known = all(word in _NAMES for word in re.findall(r"[A-Za-z]+", match["unit"]))
    return (match["rest"], name) if is_known or re.fullmatch(r"[a-z]{3,}(?: [a-z]{3,}){0,2}", match["unit"]) else None


def unit_name(words: str) -> str | None:
    """One name for the spellings of a unit; empty for "units"; ``None`` of what is no unit."""
    words = words.strip().rstrip(".").replace("{", "").replace("}", "")
    if not _PHRASE.fullmatch(words) or _NO_UNIT.search(words):
        return None
    words = re.sub(r"\bper\b", "/", re.sub(r"\bsq(uare)?\b\.?", "square", words))
    words = re.sub(r"square ([A-Za-z]+)|([A-Za-z]+) squared", r"\1\2^2", words)
    words = re.sub(r"cubic ([A-Za-z]+)|([A-Za-z]+) cubed", r"\1\2^3", words)
    named = re.sub(r"[A-Za-z]+", lambda word: _singular(word[0]), words)
    name = re.sub(r"\s*/\s*", "/", named).replace(".", "")
    return "" if name.partition("^")[0] in _NO_NAMES else name


def _singular(word: str) -> str:
    if found := _NAMES.get(word) or _NAMES.get(word.lower()):
        return found
    word = word.lower()
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
