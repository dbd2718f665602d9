r"""Exact values of plain numbers: what needs no mathematics to be read.

A plain number is an integer, a decimal, a repeating decimal, a fraction or mixed number of these, or one in scientific
notation. ``2^{10}``, ``\sqrt{4}``, ``3!`` and ``2+3`` are none: they say how to compute a number.
"""

import re
from fractions import Fraction
from math import factorial

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
    rf"|(?P<esign>[+-]?)(?P<evalue>{_UNSIGNED})[eE](?P<exponent>[+-]?\d+)"
)

_FACTOR = re.compile(
    r"(?P<base>(?<!\d)\d{1,3}(?!\d)) ?(?:\^ ?(?:\{ ?(?P<braced>\d{1,3}) ?\}|(?P<power>\d))|(?P<factorial>!))?"
)
_PRODUCT_OF_POWERS = re.compile(rf"-? ?{_FACTOR.pattern}(?:{_TIMES}{re.sub('[?]P<.*?>', '', _FACTOR.pattern)}){{0,5}}")


def exact_number(text: str) -> Fraction | None:
    """The value of a plain number in the spelling of `one_spelling`; ``None`` of anything else."""
    if len(text) > LONGEST_NUMERAL:
        return None
    if match := _DECIMAL.fullmatch(text):
        return _signed(match["sign"], _decimal(match["value"]))
    if match := _FRACTION.fullmatch(text) or _SLASHED.fullmatch(text):
        return _fraction(match)
    if match := _REPEATING.fullmatch(text):
        return _signed(match["sign"], _repeating(match["whole"], match["fixed"], match["period"]))
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


def _repeating(whole: str, fixed: str, period: str) -> Fraction:
    scale = 10 ** len(fixed)
    return Fraction(int((whole + fixed) or "0"), scale) + Fraction(int(period), scale * (10 ** len(period) - 1))


def _decimal(text: str) -> Fraction:
    digits = text.replace(",", "").replace(" ", "")
    return Fraction(digits.rstrip(".") if digits.endswith(".") else digits)


def _signed(sign: str, value: Fraction) -> Fraction:
    return -value if sign == "-" else value
