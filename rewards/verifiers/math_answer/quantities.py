r"""Numbers, their units, dates, times of day: what is read without any mathematics."""

import re
from collections import Counter
from fractions import Fraction
from math import factorial

from evenkeel.rewards.verifiers.math_answer.forms import Form, Words
from evenkeel.rewards.verifiers.math_answer.names import ADJECTIVES, CHANGING, CLAUSE, COUNTED_NOUNS, PEOPLE, measure_of
from evenkeel.rewards.verifiers.math_answer.notation import NOTATION, balanced

LARGEST_EXPONENT = 400
SMALLEST_BARE_EXPONENT = 3  # 10^6 is a way to write a number, 10^2 something to compute
LONGEST_NUMERAL = 1000  # characters: Python's own limit for reading an integer is 4300 digits

_UNSIGNED = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|[1-9]\d{0,2}(?: \d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)"
_SIGN = r"(?P<sign>[+-]?) ?"
_DECIMAL = re.compile(rf"{_SIGN}(?P<value>{_UNSIGNED})")
_REPEATING = re.compile(rf"{_SIGN}(?P<whole>\d*)\.(?P<fixed>\d*)\\overline ?\{{(?P<period>\d+)\}}")
_FRACTION = re.compile(
    rf"{_SIGN}(?:(?P<whole>\d+) ?)?\\frac ?\{{ ?(?P<above>[+-]? ?{_UNSIGNED}) ?\}} ?"
    rf"\{{ ?(?P<below>[+-]? ?{_UNSIGNED}) ?\}}"
)
_SLASHED = re.compile(rf"{_SIGN}(?:(?P<whole>\d+) (?=\d+/))?(?P<above>{_UNSIGNED}) ?/ ?(?P<below>{_UNSIGNED})")
_TIMES = r" ?(?:\\times|\\cdot|\*|x) ?"
_SCIENTIFIC = re.compile(
    rf"{_SIGN}(?:(?P<value>{_UNSIGNED})(?:{_TIMES}))?10 ?\^ ?(?:\{{ ?(?P<braced>[+-]?\d+) ?\}}|(?P<bare>-?\d+))"
    rf"|(?P<fsign>[+-]?) ?\\frac ?\{{ ?(?P<over>\d+) ?\}} ?\{{ ?10 ?\^ ?\{{? ?(?P<tenth>\d+) ?\}}? ?\}}"
    rf"|(?P<esign>[+-]?)(?P<evalue>{_UNSIGNED})[eE](?P<exponent>(?:(?<=\.\d[eE])|(?<=\.\d\d[eE]))[+-]?\d+|[+-]?(?:\d\d+|[3-9])|\d)"
)

_FACTOR = re.compile(
    r"(?P<base>(?<!\d)\d{1,3}(?!\d)) ?(?:\^ ?(?:\{ ?(?P<braced>\d{1,3}) ?\}|(?P<power>\d))|(?P<factorial>!))?"
)
_PRODUCT_OF_POWERS = re.compile(rf"-? ?{_FACTOR.pattern}(?:{_TIMES}{re.sub('[?]P<.*?>', '', _FACTOR.pattern)}){{0,5}}")

PERCENT, DEGREE = "percent", "degree"

LENGTHS = frozenset(NOTATION["lengths"].split())
_EVERYDAY = LENGTHS | set(NOTATION["everyday"].split())
_COUNTED = {*COUNTED_NOUNS.values()} - NOTATION["units"].keys()
SIGNED = {"dollar", "degree", "celsius", "fahrenheit", "percent"}  # of values below zero, too
_NAMES = {
    spelling: name for name, others in NOTATION["units"].items() for spelling in (name, name + "s", *others.split())
}
_CURRENCIES: dict[str, str] = NOTATION["currencies"]
_NO_NAMES = {"unit", "units"}  # "5 units" says no more than "5"
_WORD = r"[A-Za-z]+(?:'s)?\.?(?:\^-?[1-9])?"
_PHRASE = re.compile(rf"{_WORD}(?:[ /(-]{{1,4}}{_WORD}){{0,9}}\)?")
_STUFF = "|".join(NOTATION["counted"]["stuff"].split())
_WHOLE = "|".join({*COUNTED_NOUNS, *_STUFF.split("|")} - CHANGING)
_OF = re.compile(rf"^((?:[a-z]+ )*(?!percent|degree)[a-z]+) of (?P<of>{_STUFF}|(?P<counted>[a-z]+))$")
_SAID, _DIMENSIONS = (
    "|".join(f"(?P<{name}>{words})" for name, words in NOTATION[table].items())
    for table in ("behind a unit", "dimensions")
)
_BEHIND = re.compile(
    rf"(?: |^)(?:{_SAID}|of (?:them|these|those))$|(?<=[a-z]) (?:{_DIMENSIONS})$"
    rf"|(?:(?<!percent) |^)of (?:all )?the (?P<part>{_WHOLE})$"
    r"|(?<=^ways) to [a-z]+(?: (?:the|all|these|them))?(?: [a-z]+)?$"
)
_PART = re.compile(rf"/|[()]|{_WORD}")
_POWER = r" ?\^ ?(?:\{ ?-?[1-9] ?\}|-?[1-9])"
_TEXT = rf"\\text ?\{{[^{{}}]*(?:\^\{{-?\d\}}[^{{}}]*)*\}}(?:{_POWER})?"
_TEXT_SUFFIX = re.compile(rf"(?P<rest>.*?\S)\s*(?P<unit>{_TEXT}(?: ?(?:\\cdot|/)? ?{_TEXT})*)", re.DOTALL)
_QUOTIENT = re.compile(rf"\\frac ?\{{ ?({_TEXT}) ?\}} ?\{{ ?({_TEXT}(?: ?(?:\\cdot)? ?{_TEXT})*) ?\}}$")
_SPACED_SUFFIX = re.compile(r"(?P<rest>.*[\d}]) (?P<unit>[A-Za-z][A-Za-z^{}0-9/ .-]*)")
_CLOSE_SUFFIX = re.compile(  # what is hardly a product of letters, as 3mg, 3ms and 3ha are
    rf"(?P<rest>.*[\d}}])(?P<unit>(?:[ckm]m|(?<=\d)(?:kg|mph|mins?|secs?|hrs|lbs))(?:{_POWER})?)"
)
_LETTERS = re.compile(r"[A-Za-z](?:\^\{?\d\}?)?(?: [A-Za-z](?:\^\{?\d\}?)?)+|(?!m)[A-Za-z]\^\{?\d\}?")
_OHM = re.compile(r"(?:(?<=[\d} ])|\\text ?\{ ?([kM]) ?\} ?)\\Omega$|\\text ?\{ ?([kM]?) ?\\Omega ?\}$")
_TEMPERATURE = re.compile(r"(?P<rest>.*)\^\\circ ?(?P<scale>C|F|\\text ?\{[CF]\})?")

_MONTHS: list[str] = NOTATION["months"].split()
_DAYS: list[str] = NOTATION["days"].split()
_SHORT: dict[str, str] = {**{name[:3]: name for name in (*_MONTHS, *_DAYS)}, **NOTATION["short dates"]}
_ALSO_WORDS = {"sun", "sat", "jan", "mar"}
_DATE = re.compile(
    r"(?:(?P<weekday>[a-z]+day) )?(?:(?P<month>[a-z]+) (?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r"|(?:the )?(?P<first>\d{1,2})(?:st|nd|rd|th)? (?:of )?(?P<then>[a-z]+))(?: (?P<year>\d{4}))?"
)


def exact_number(text: str) -> Fraction | None:
    """The value of a plain number in the spelling of `normalise_latex`; ``None`` of anything else."""
    if len(text) > LONGEST_NUMERAL:
        return None
    if match := _DECIMAL.fullmatch(text):
        return _signed(match["sign"], _decimal(match["value"]))
    if match := _FRACTION.fullmatch(text) or _SLASHED.fullmatch(text):
        return _fraction(match)
    if match := _REPEATING.fullmatch(text):
        fixed, period = match["fixed"], match["period"]
        scale = 10 ** len(fixed)
        value = Fraction(int((match["whole"] + fixed) or "0"), scale)
        value += Fraction(int(period), scale * (10 ** len(period) - 1))
        return _signed(match["sign"], value)
    if match := _SCIENTIFIC.fullmatch(text):
        exponent = int((match["braced"] or match["bare"] or match["exponent"] or f"-{match['tenth']}")[:8])
        mantissa = match["value"] or match["evalue"] or match["over"]
        if abs(exponent) <= LARGEST_EXPONENT and (mantissa or abs(exponent) >= SMALLEST_BARE_EXPONENT):
            value = _decimal(mantissa or "1")
            return _signed(match["sign"] or match["esign"] or match["fsign"] or "", value * Fraction(10) ** exponent)
    return None


def product_of_powers(text: str) -> int | None:
    """The value of ``2^{10}``, ``6!`` or a product of such and integers, of at most 999; ``None`` of anything else."""
    if not _PRODUCT_OF_POWERS.fullmatch(text):
        return None
    value = -1 if text.startswith("-") else 1
    for match in _FACTOR.finditer(text):
        base = int(match["base"])
        value *= factorial(base) if match["factorial"] else base ** int(match["braced"] or match["power"] or 1)
    return value


def _fraction(match: re.Match[str]) -> Fraction | None:
    above, below = _decimal(match["above"]), _decimal(match["below"])
    if below == 0:
        return None
    if match["whole"] is None:
        return _signed(match["sign"], above / below)
    if not 0 <= above < below:  # 2 \frac{7}{3} is a product if it is anything
        return None
    return _signed(match["sign"], int(match["whole"]) + above / below)


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", "").replace(" ", ""))


def _signed(sign: str, value: Fraction) -> Fraction:
    return -value if sign == "-" else value


def split_unit(text: str) -> tuple[str, str] | None:
    """What is measured and its unit's name, of a text in the spelling of `normalise_latex`; ``None`` without a unit.

    The name is empty for a unit that says nothing ("units").
    """
    for symbol, name in _CURRENCIES.items():
        if text.startswith(symbol):
            amount = text.removeprefix(symbol).strip()
            behind = _TEXT_SUFFIX.fullmatch(amount)
            behind = behind or _SPACED_SUFFIX.fullmatch(amount)  # $18 per day
            if behind and (unit := unit_name(f"{name} {behind['unit']}")):
                return behind["rest"], unit
            return amount, name
        if text.startswith("-" + symbol):
            return "-" + text.removeprefix("-" + symbol).strip(), name
        if text.endswith(symbol):
            return text.removesuffix(symbol).strip(), name
    if text.endswith("%"):
        return text[:-1].strip(), PERCENT
    if (match := _TEMPERATURE.fullmatch(text)) and match["rest"].strip():
        scale = (match["scale"] or "").replace("\\text", "").strip(" {}")
        return match["rest"].strip(), {"C": "celsius", "F": "fahrenheit"}.get(scale, DEGREE)
    return _word_suffix(_QUOTIENT.sub(r"\1/(\2)", _OHM.sub(r"\\text{\1\2ohm}", text)))


def _word_suffix(text: str) -> tuple[str, str] | None:
    rest, slash, divisor = text.partition("/(\\text")  # of a quotient in words
    if match := _TEXT_SUFFIX.fullmatch(rest):
        name = unit_name(match["unit"] + slash + divisor)
        return None if name is None else (match["rest"], name)
    if (match := _SPACED_SUFFIX.fullmatch(text) or _CLOSE_SUFFIX.fullmatch(text)) is None:
        return None
    rest, unit = match.groups()
    if _LETTERS.fullmatch(unit) or (len(unit) == 1 and re.search(r"(?<![\\a-zA-Z])[a-zA-Z]", rest)):  # 6 s^2, r^2 h
        return None
    name = unit_name(unit) if balanced(rest) else None  # \\sqrt{2 g h} holds no grams
    return None if name is None else (rest, name)


def unit_name(words: str) -> str | None:
    r"""One name for the spellings of a unit; empty for "units"; ``None`` of what is not a unit.

    What is said behind it ("deep", "of salt") follows a ``|``: it may be left out, but not be another.
    Products and quotients become powers in one order: ``m/s^2`` and "meters per second squared" ``meter second^-2``.
    """
    words = words.replace("}{", "} {").replace("\\cdot", " ")
    words = re.sub(r"\\text|[{}]", "", re.sub(r"\\mu ?", "u", words))
    words = re.sub(r" ?\^ ?", "^", " ".join(words.split())).rstrip(".")
    words = re.sub(r"\bdegrees? (?=[CcFf])", "", words)
    if not _PHRASE.fullmatch(words):
        return None
    if (clause := CLAUSE.fullmatch(words)) and not _BEHIND.search(words):
        unit = unit_name(clause["counted"]) or ""
        is_counted = unit and {*unit.split()} <= _COUNTED | ADJECTIVES | PEOPLE
        if not is_counted or CHANGING & {*words.lower().split()}:
            return None
        return f"{unit}|{clause['clause']}"
    words = re.sub(r"(?<=[a-z])-(?=digit )", "", words)  # three-digit numbers
    words = re.sub(r"\bordered pairs?\b|(?<=\bunordered )pairs?\b", "tuple", words)  # 5 pairs: 10?
    words = re.sub(r"\bpairs?(?= of )", "sets", words)
    if of := _OF.match(words):
        words = of[1] if of["counted"] is None or of["counted"] in COUNTED_NOUNS else words
    behind = _BEHIND.search(words)
    detail = f"|{behind.lastgroup}" if behind and behind.lastgroup else f"|{of['of'].rstrip('s')}" if of else ""
    words = re.sub(r"\blight[ -]years?\b", "lightyear", words[: behind.start()] if behind else words)
    words = re.sub(r"\b(?:per|every)\b|(?<=[a-z]) an?(?= [a-z])", "/", re.sub(r"\bsq(uare)?\b\.?", "square", words))
    words = re.sub(r"square ([A-Za-z]+)|([A-Za-z]+) squared", r"\1\2^2", words)
    words = re.sub(r"cubic ([A-Za-z]+)|([A-Za-z]+) cubed", r"\1\2^3", words)
    if (powers := _powers(words)) is None:
        return None
    if powers.keys() <= _NO_NAMES and len(powers) < 2:
        return f"|unit^{powers['unit']}" if powers else detail
    ordered = powers.items() if powers.keys() <= _COUNTED | ADJECTIVES else sorted(powers.items())
    return " ".join(name if power == 1 else f"{name}^{power}" for name, power in ordered) + detail


def is_everyday(unit: str) -> bool:
    """Whether a value without a unit may have been meant in it: a length, area, time, price or what is counted."""
    name = unit.partition("|")[0]
    if all(word in ADJECTIVES or word in _COUNTED for word in name.split()):
        return True
    parts = [part.partition("^") for part in name.split()]
    powers = {part[0]: part[2] or "1" for part in parts}
    if powers.keys() <= {"degree", "celsius", "fahrenheit"} or unit in _CURRENCIES.values():
        return True
    if len(powers) > 1:
        return "-" in "".join(powers.values()) and all(part in _EVERYDAY or part in _COUNTED for part in powers)
    return all(
        part in _EVERYDAY and (power == "1" or (part in LENGTHS and power in "23")) for part, power in powers.items()
    )


def may_be_in(unit: str, name: str) -> bool:
    """Whether what has this name may be given in this unit: an area in square meters, a number in what is counted."""
    size, power, exponent = unit.partition("^")
    if measure := measure_of(name):
        return ("length" if size in LENGTHS else size) + power + exponent in measure
    return "number of " not in name or size in name or {*size.split()} <= _COUNTED | PEOPLE


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
            name = _measure(word) or (None if power else COUNTED_NOUNS.get(word.lower()))
            is_left_open = name is None
            if is_left_open and (power or word.lower() not in ADJECTIVES):
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
    """The one name of a unit; only a whole word may be in capitals: 5M is no length, Mmol no mmol."""
    if word.lower() in _NO_NAMES:
        return "unit"
    name = _NAMES.get(word.lower(), "")
    return _NAMES.get(word) or (name if word.lower() in (name, name + "s") else None)


def date(text: str) -> Form | None:
    """A date, a month of a year or a day of the week, in one spelling; noon and midnight as times."""
    plain = re.sub(r"\^ ?\{?|\\text|[{}]", " ", text).lower()
    plain = re.sub(r"(?<=\d) (?=(?:st|nd|rd|th)\b)", "", " ".join(re.sub(r"[.,]", " ", plain).split()))
    plain = plain.removeprefix("on ")
    plain = plain if plain in _ALSO_WORDS else " ".join(_SHORT.get(word, word) for word in plain.split())
    if re.fullmatch(r"(?:12:00 )?(?:12 )?(noon|midnight)", plain):
        return Words("12:00pm" if plain.endswith("noon") else "12:00am")
    if plain in _MONTHS or plain in _DAYS:
        return Words(plain)
    match = _DATE.fullmatch(plain)
    month = match and (match["month"] or match["then"])
    if match is None or month not in _MONTHS:
        return None
    day = int(match["day"] or match["first"])
    return Words(" ".join(part for part in (match["weekday"], month, str(day), match["year"]) if part))
