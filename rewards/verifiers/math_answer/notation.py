"""One spelling for what LaTeX and Unicode spell in many ways. The meaning is kept; nothing is evaluated."""

import json
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

NOTATION = json.loads(Path(__file__).with_name("notation.json").read_text(encoding="utf-8"))
"""Tables of what means the same: characters, commands, units and currencies, each by its one spelling."""
_UNICODE = str.maketrans(
    {character: spelling for spelling, characters in NOTATION["characters"].items() for character in characters}
    | {letter: f"\\{name} " for name, letter in NOTATION["greek"].items()}
    | {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}  # full width
)
_COMMANDS = {command: spelling for spelling, commands in NOTATION["commands"].items() for command in commands}

TEXT = re.compile(r"\\text ?\{([^{}]*)\}")

_SMALL = {"^": re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿˣ]+"), "_": re.compile("[₀-₉ₙₖ]+")}
_FRACTION_SIGN = re.compile("[¼-¾⅐-⅞]")
_INVISIBLE = re.compile(r"\\(?:left|right) ?\.|\\(?:text)?color ?\{(?:red|blue|green)\}|(?:\\\\\s*)+$")
_BOLD = r"\\(?:mathbf|bm|boldsymbol) ?\{ ?([a-zA-Z]) ?\}"
_BOLD_PRODUCT = re.compile(rf"{_BOLD} ?\\(?:cdot|times) ?{_BOLD}")
_TWICE_IN_BRACES = re.compile(r"(?<!\\)\{ ?(\{[^{}]*[^{}\\]\}) ?\}")
_SIGN_IN_BRACES = re.compile(r"(?<![\^_}])(?:\{ ?(?=[-+])|(?<![a-z])\{ ?)([-+:]) ?\}")
_GAP = re.compile(
    r"^(?:\\quad ?)+|(?<=[,;:(=]) ?(?:\\quad ?)+"
    r"|(?:\\quad ?)+(?=[,;:)=]|\\text|\(? ?[a-z] ?\\in|$)|(?<=[a-z]\}) ?(?:\\quad ?)+"
)
"""Wide space beside a sign or a text: elsewhere it separates two answers, and has no reading."""
_TIE = re.compile(r"(?<=[^\s$\\])~|^\\underline(?!.*\\underline)")  # ~5 is about five, 5~cm is 5 cm
_DOTTED = re.compile(r"(\.\d*)\\dot ?\{?(\d)\}?(?!\d|\\)")
_CONTROL = re.compile(r"\\([a-zA-Z]+|.)", re.DOTALL)
# two answers, and no numeral
_APART = re.compile(r"(\\\))\s*(?=\\\()|(?<=\w)()\s*\n\s*(?=\d)|(?<=[^$\\]\$)()(?=\$\d)")
_DOLLARS = re.compile(r"\\.|(\$+)", re.DOTALL)
_CURRENCY = re.compile(r"^[-(\s]*\$\s*[\d.]|\d\s*\$$")
_ITEM = r"(?:\{ ?([\da-z][\da-z+-]*) ?\}|([\da-z]))"
_CHOOSE = re.compile(
    rf"(?<![A-Za-z\\])(?:C ?_ ?(?!\{{? ?[0-3] ?}}? ?\^)|\{{\}} ?_ ?){_ITEM} ?(?:\^|C ?_) ?{_ITEM}"  # C_5^2 and {}_5C_2
    rf"|(?<![A-Za-z\\])\{{?\}}? ?\^ ?{_ITEM} ?C ?_ ?{_ITEM}"
    r"|(?<![A-Za-z\\])C ?\( ?((?:\d+)?[kmnrN](?:[+-]\d+)?) ?, ?([\da-z+-]+) ?\)"
    r"|\{([^{}]*)\\choose(?![a-zA-Z])([^{}]*)\}"
)
_BRACKETS = re.compile(r"[()\[\]{}]")
_WRAPPERS = ("**", "'", '"')
_BARE_ROOT = re.compile(r"(?<![\\a-zA-Z])\s*sqrt\s*(?:(\d+(?:\.\d+)?)|(?=[({]|[a-z]\b))")
_THOUSANDS_COMMA = re.compile(r"(?<=\d)(?:\{,\}|,\\!)\s*(?=\d{3}(?!\d))")
_THOUSANDS = re.compile(r"(?<![\d,.])[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)")
_LIST_OF_THOUSANDS = re.compile(r"(?=.*\d,\d{3}(?!\d)).*(?:, |and|or|[<>]|\\le|\\ge|\d,0\d\d(?!\d))", re.DOTALL)
_DECIMAL_COMMA = re.compile(r"(?<=\d)\{,\}(?=\d)")
_DECIMAL_COMMA_BEFORE_ZERO = re.compile(r"^([-+]?\d+),(0\d|0\d{3,})$")  # no list writes 05
_OVER = re.compile(r"\{([^{}]*)\\over(?![a-zA-Z])([^{}]*)\}")
_QUANTITY_IN_TEXT = re.compile(r"\\text ?\{ *([-+]?\d[\d.,/]*) +([^{}\d]*)\}")
# who writes 2^10 means no 2^1 0; x^10 may be either
_EXPONENT = re.compile(r"(?<=\d)\^ ?(-?\d{2,})|\^ ?(-\d)(?!\d)")
_FULL_STOP = re.compile(r"(?<![.\s])\s*[.,;]$")
_SCALED = re.compile(r"(\d+(?:\.\d+)?) ?(\\text ?\{)? ?(m|b|tr)illion(?![a-z])")
_ILLIONS = {"m": 6, "b": 9, "tr": 12}
_DEGREES = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-zA-Z]))\s*")
_TEXT_WITHOUT_WORDS = re.compile(r"\\text\s*\{\s*((?:[^{}a-zA-Z]*|[ie]|\([A-Z]\)))\s*\}")
_IN_BASE = re.compile(r"(?<=[\dA-Z]) ?\\text ?\{ ?(?:\(|in )?base (\d+)\)? ?\}$")
_DERIVATIVE = re.compile(  # \\frac{dy}{dx} is y'
    r"\\frac ?\{ ?d(?: ?\^ ?\{? ?([23]) ?\}?)? ?([a-wyzA-Z]) ?\} ?\{ ?d ?x(?(1) ?\^ ?\{? ?\1 ?\}?) ?\}"
)
_CHINESE: dict[str, str] = NOTATION["chinese"]
_CHINESE_WORD = "|".join(sorted(_CHINESE, key=len, reverse=True))
_IN_CHINESE = re.compile(
    rf"\\text ?\{{ ?((?:{_CHINESE_WORD}|/)+) ?\}}|(?<![一-鿿])((?:{_CHINESE_WORD})(?:{_CHINESE_WORD}|/)*)(?![一-鿿])"
)
_CHOICE = re.compile(
    r"^(?:(?P<plain>[A-H])(?:[.:] |\) ?)|\\text ?\{ ?\(?(?P<text>[A-H])(?:\)|[.:](?=[ }]))(?P<empty> ?\})?)(?=.)"
)
_ABOUT = re.compile(rf"^(?:~|(?:\\text ?\{{ ?)?(?:{NOTATION['about']}) ?\}}?) ?(?=[-\d.\\$])")
_TEXT_INDEX = re.compile(r"(?<![0-9A-Z][A-Z])(?<=[A-Za-z]) ?_ ?\{? ?\\text ?\{ ?([A-Za-z]+) ?\} ?\}?")
_CAPITAL_IN_TEXT = re.compile(
    r"(?<![\d}])(?<![\d}] )(?<!\\pi)(?<!\} \\cdot )(?<!\}\\cdot )\\text\s*\{\s*([A-Z])\s*\}|\\text ?\{([A-Z])\}(?= ?_)"
)  # 5 \text{ N} is a unit


@lru_cache(maxsize=4096)
def normalise_latex(text: str) -> str:
    """``text`` without layout, in ASCII where there is an ASCII spelling, and with one command for each meaning.

    Delimiters of mathematics, emphasis around the whole, sizes of brackets, thin spaces and the like go;
    ``\\dfrac12`` becomes ``\\frac{1}{2}``, ``√2`` ``\\sqrt{2}``, ``\\leqslant`` ``\\le``; every font for words becomes
    ``\\text``. The work is linear in the length, times the nesting.
    """
    text = _DECIMAL_COMMA_BEFORE_ZERO.sub(r"\1.\2", without_dollars(_APART.sub(r"\1 \\quad ", text.strip())))
    text = _DECIMAL_COMMA.sub(".", _THOUSANDS_COMMA.sub("", text))
    text = re.sub(_BOLD, r"\\vec{\1}", text) if _BOLD_PRODUCT.search(text) else text
    if _LIST_OF_THOUSANDS.match(text):
        text = _THOUSANDS.sub(lambda numeral: numeral[0].replace(",", ""), text)
    text = _TIE.sub(" ", _INVISIBLE.sub(" ", _SIGN_IN_BRACES.sub(r"\1", text)))
    text = _small_signs_spelled_out(text).translate(_UNICODE)
    text = _DOTTED.sub(r"\1\\overline{\2}", text)
    text = _unwrapped(_CONTROL.sub(lambda match: _COMMANDS.get(match[1], match[0]), text))
    text = _IN_BASE.sub(r"_{\1}", text)
    text = _ABOUT.sub(r"\\approx ", text)
    text = _IN_CHINESE.sub(_in_english, _TEXT_INDEX.sub(r"_{\1}", _CHOICE.sub(_choice, text)))
    text = _BARE_ROOT.sub(lambda bare: f"\\sqrt{{{bare[1]}}}" if bare[1] else "\\sqrt", _DEGREES.sub(r"^\\circ ", text))
    text = _SCALED.sub(lambda found: f"{found[1]} \\times 10^{{{_ILLIONS[found[3]]}}} {found[2] or ''}", text)
    text = _QUANTITY_IN_TEXT.sub(r"\1 \\text{\2}", _EXPONENT.sub(r"^{\1\2}", text))
    text = _TEXT_WITHOUT_WORDS.sub(r" \1 ", _OVER.sub(r"\\frac{\1}{\2}", _CAPITAL_IN_TEXT.sub(r" \1\2 ", text)))
    text = _CHOOSE.sub(lambda match: "\\binom{{{}}}{{{}}}".format(*filter(None, match.groups())), text)
    text = _TWICE_IN_BRACES.sub(r"\1", _with_braces(text))
    text = _DERIVATIVE.sub(lambda match: match[2] + "'" * int(match[1] or 1), text)
    return _GAP.sub(" ", " ".join(text.split())).strip()


def without_dollars(text: str) -> str:
    r"""``text`` without the dollars that delimit mathematics, wherever they stand; ``\$`` and a single ``$5`` stay."""
    dollars = [match for match in _DOLLARS.finditer(text) if match[1]]
    if len(dollars) == 1 and _CURRENCY.search(text):
        return text
    text = re.sub(r"(?<=[^\s$\\])(\$+)\s+(?=\$+[^\s$])", r"\1 \\quad ", text) if len(dollars) > 2 else text
    return _DOLLARS.sub(lambda match: " " if match[1] else match[0], text).strip() if dollars else text


def without_spaces(text: str) -> str:
    """``text`` without the spaces that separate nothing: those between two letters or two digits stay."""
    return re.sub(r"(?<![0-9A-Za-z]) | (?![0-9A-Za-z])|(?<=[0-9]) (?=[A-Za-z])|(?<=[A-Za-z]) (?=[0-9])", "", text)


def without_full_stop(text: str) -> str:
    """``text`` without the punctuation of its sentence; an ellipsis stays."""
    return _FULL_STOP.sub("", text.strip())


def balanced(text: str) -> bool:
    """Whether braces pair up, and round and square brackets too, a half-open interval's unlike pair included."""
    if not _BRACKETS.search(text):
        return True
    return _pairs_up(text.replace("\\{", "").replace("\\}", ""), "{", "}") and _pairs_up(text, "([", ")]")


def matching_end(text: str, start: int) -> int:
    """The index after the bracket that closes the one at ``start``; brackets of any kind nest; −1 where none does."""
    ends = (index + 1 for index, depth in enumerate(depths(text[start:]), start) if depth == 0)
    return next(ends, -1)


def depths(text: str, opening: str = "([{", closing: str = ")]}") -> Iterator[int]:
    """How many brackets are open behind each character."""
    return accumulate((character in opening) - (character in closing) for character in text)


def split_outside_brackets(text: str, separator: re.Pattern[str]) -> list[str]:
    """The pieces between the matches of ``separator`` that no bracket encloses."""
    found = outside_brackets(text, separator)
    begins, ends = [0, *(match.end() for match in found)], [*(match.start() for match in found), len(text)]
    return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]


def outside_brackets(text: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """The matches of ``pattern`` that no bracket encloses."""
    found = list(pattern.finditer(text))
    before = [0, *depths(text)] if found else []
    return [match for match in found if before[match.start()] == 0]


def _unwrapped(text: str) -> str:
    """``text`` without emphasis or quotes around the whole and without the full stop of its sentence."""
    while True:
        before, text = text, without_full_stop(text)
        for mark in _WRAPPERS:
            inner = text[len(mark) : -len(mark)]
            if text.startswith(mark) and text.endswith(mark) and inner and mark not in inner:
                text = inner
        if text == before:
            return text


def _small_signs_spelled_out(text: str) -> str:
    """``x¹⁰``, ``3ˣ``, ``a₁`` and ``2⅗`` in LaTeX."""
    for sign, run in _SMALL.items():
        text = run.sub(lambda found: f"{sign}{{{unicodedata.normalize('NFKC', found[0])}}}", text)  # noqa: B023
    return _FRACTION_SIGN.sub(
        lambda sign: "\\frac{{{}}}{{{}}}".format(*unicodedata.normalize("NFKC", sign[0]).split("⁄")), text
    )


def _in_english(run: re.Match[str]) -> str:
    """Units and conjunctions in Chinese as those in English."""
    return f"\\text{{ {re.sub(_CHINESE_WORD, lambda word: _CHINESE[word[0]], run[1] or run[2])} }}"


def _choice(choice: re.Match[str]) -> str:
    """``B. 12``, ``B) 12`` and ``\\text{B: a square}`` as ``(B) 12`` and ``(B) \\text{a square}``."""
    return f"({choice['plain'] or choice['text']}) " + ("" if choice["plain"] or choice["empty"] else "\\text{")


def _pairs_up(text: str, opening: str, closing: str) -> bool:
    levels = [0, *depths(text, opening, closing)]
    return min(levels) == 0 == levels[-1]


def _with_braces(text: str) -> str:
    r"""Braces around each argument of ``\frac``, ``\binom`` and ``\sqrt``, which LaTeX lets one leave out."""
    pieces, position = [], 0
    for match in re.finditer(r"\\(frac|binom|sqrt|vec|hat|tilde|overline)(?![a-zA-Z])", text):
        if match.start() < position:
            continue
        pieces.append(text[position : match.end()])
        position = match.end()
        if match[1] == "sqrt" and text[position : position + 1] == "[":
            end = text.find("]", position) + 1 or len(text)
            pieces.append(text[position:end])
            position = end
        for _ in range(2 if match[1] in ("frac", "binom") else 1):
            argument, position = _argument(text, position)
            pieces.append("{" + _with_braces(argument) + "}")
    return "".join([*pieces, text[position:]])


def _argument(text: str, position: int) -> tuple[str, int]:
    """The argument that begins at ``position``, without braces, and where it ends."""
    while position < len(text) and text[position] == " ":
        position += 1
    if text[position : position + 1] in ("{", "("):  # sqrt(2), as plain text writes it
        end = matching_end(text, position)
        if end > 0:
            return text[position + 1 : end - 1], end
    control = _CONTROL.match(text, position)
    if control:
        return control[0], control.end()
    return text[position : position + 1], position + 1
