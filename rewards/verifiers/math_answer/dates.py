r"""Dates, times of day, and quantities in several units: ``March 5, 2021``, ``3:30 p.m.``, ``2 hours 30 minutes``."""

import re
from collections.abc import Callable
from fractions import Fraction

from rewards.verifiers.math_answer.forms import Form, Measures, Number, Words
from rewards.verifiers.math_answer.units import unit_name

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_SHORT = {
    **{month[:3]: month for month in _MONTHS},
    "sept": "september",
    **{day[:3]: day for day in _DAYS},
    **{"tues": "tuesday", "thur": "thursday", "thurs": "thursday"},
}
_DATE = re.compile(
    r"(?:(?P<weekday>[a-z]+day) )?(?:(?P<month>[a-z]+) (?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r"|(?:the )?(?P<first>\d{1,2})(?:st|nd|rd|th)? (?:of )?(?P<then>[a-z]+))(?: (?P<year>\d{4}))?"
)
_MONTH_OF_YEAR = re.compile(r"(?P<month>[a-z]+) (?P<year>\d{4})")
_CLOCK = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>[0-5]\d)(?P<half>am|pm)?")
_SCALES = (
    {"week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1},
    {"mile": 63360, "yard": 36, "foot": 12, "inch": 1},
    {"kilometer": 1_000_000, "meter": 1000, "centimeter": 10, "millimeter": 1},
    {"pound": 16, "ounce": 1},
    {"kilogram": 1000, "gram": 1},
    {"dollar": 100, "cent": 1},
    {"liter": 1000, "milliliter": 1},
    {"year": 12, "month": 1},
)
_PART = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>[A-Za-z]+)\.?(?:,? and |, ?| )?")


def date(text: str, form: Callable[[str], Form]) -> Form | None:
    """A date, a month of a year or a day of the week, in one spelling; noon and midnight as times."""
    plain = re.sub(r"\^ ?\{?|\\text|[{}]", " ", text).lower()
    plain = re.sub(r"(?<=\d) (?=(?:st|nd|rd|th)\b)", "", " ".join(re.sub(r"[.,]", " ", plain).split()))
    plain = " ".join(_SHORT.get(word, word) for word in plain.removeprefix("on ").split())
    if re.fullmatch(r"(?:12:00 )?(?:12 )?(noon|midnight)", plain):
        return Words("12:00pm" if plain.endswith("noon") else "12:00am")
    if plain in _MONTHS or plain in _DAYS:
        return Words(plain)
    if (match := _MONTH_OF_YEAR.fullmatch(plain)) and match["month"] in _MONTHS:
        return Words(plain)
    match = _DATE.fullmatch(plain)
    month = match and (match["month"] or match["then"])
    if match is None or month not in _MONTHS:
        return None
    day = int(match["day"] or match["first"])
    return Words(" ".join(part for part in (match["weekday"], month, str(day), match["year"]) if part))


def same_time(gold: str, answer: str) -> bool:
    """Whether both are one time of day. 15:30 is 3:30 p.m.; a gold without a half of the day, 3:30, leaves it open."""
    one, other = _CLOCK.fullmatch(gold), _CLOCK.fullmatch(answer)
    if one is None or other is None or one["minute"] != other["minute"]:
        return False
    known = [match["half"] is not None or int(match["hour"]) > 12 or match["hour"] == "00" for match in (one, other)]
    if all(known):
        return _hour(one) == _hour(other)
    return not known[0] and int(one["hour"]) % 12 == int(other["hour"]) % 12 and int(other["hour"]) <= 12


def _hour(match: re.Match[str]) -> int:
    return int(match["hour"]) if match["half"] is None else int(match["hour"]) % 12 + 12 * (match["half"] == "pm")


def measures(text: str, form: Callable[[str], Form]) -> Form | None:
    """A quantity in two units or more of one scale, each after a larger one."""
    plain = " ".join(re.sub(r"\\text|[{}]", " ", text).split())
    parts = list(_PART.finditer(plain))
    if len(parts) < 2 or "".join(part[0] for part in parts) != plain:
        return None
    names = [unit_name(part["unit"]) for part in parts]
    scale = next((scale for scale in _SCALES if all(name in scale for name in names)), None)
    if scale is None:
        return None
    sizes = [scale[name] for name in names if name]
    if sizes != sorted(set(sizes), reverse=True):
        return None
    total = sum((Fraction(part["number"]) * size for part, size in zip(parts, sizes, strict=True)), Fraction(0))
    return Measures(total, next(iter(scale)))


def total_of(form: Form) -> Measures | None:
    """A quantity in one unit or several, as its total in the least unit of its scale."""
    if isinstance(form, Measures):
        return form
    scale = next((scale for scale in _SCALES if isinstance(form, Number) and form.unit in scale), None)
    if scale is None or not isinstance(form, Number):
        return None
    return Measures(form.value * scale[form.unit], next(iter(scale)))
