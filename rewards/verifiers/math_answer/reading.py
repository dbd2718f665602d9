"""From text to form: which kind of answer a text is, and its parts. Nothing is evaluated but plain numbers."""

import re
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from evenkeel.rewards.verifiers.math_answer import names, notation, quantities
from evenkeel.rewards.verifiers.math_answer.forms import (
    EMPTY_SET,
    INFINITY,
    MINUS_INFINITY,
    REALS,
    About,
    Answer,
    Congruence,
    Expression,
    Form,
    Interval,
    Listing,
    Matrix,
    Named,
    Number,
    Quantified,
    Relation,
    Row,
    Union,
    Unreadable,
    Words,
    Worked,
    units_in,
    unreadable_part,
)
from evenkeel.rewards.verifiers.math_answer.names import is_name, squeezed
from evenkeel.rewards.verifiers.math_answer.notation import NOTATION, TEXT, matching_end, split_outside_brackets

_SETS_IN_WORDS: dict[str, Form] = dict.fromkeys(NOTATION["no solution"], EMPTY_SET)
_SETS_IN_WORDS |= dict.fromkeys(NOTATION["all reals"], REALS)

# most answers: nothing about them is to be spelled out
_BARE_NUMBER = re.compile(r"-?[0-9]{1,100}(?:\.[0-9]{1,100})?")
_BARE_LETTER = re.compile(r"[\d})][a-zA-Z](?:\^\{?\d\}?)?$|\\Omega$")
_BASED = re.compile(
    r"(?:\(?([0-9A-Fa-f]+|[0-9A-Z]+)\)?|\\text ?\{([0-9A-Z]+)\}) ?_ ?"
    r"(?:(\d)|\{ ?\(?(\d+|\\text ?\{[a-z]+\})\)? ?\}|\\text ?\{([a-z]+)\})"
)
_NEGATIVE = re.compile(r"- ?\( ?(?P<value>[^()+-]*?) ?\)")
_ONLY = re.compile(r"(?<=[^\s{]) ?(?:\\text ?\{ ?only ?\}|(?<![A-Za-z])only)$")
_CHECKED = re.compile(r"^([^=]*[^= ]) ?\( ?= ?([^()=]*)\)$")  # 88 (= 41 + 47)
_ORDINAL = re.compile(r"^(\d+)(?: ?\^ ?\{? ?)?(?: ?\\text ?\{ ?)?(?:st|nd|rd|th)(?: ?\}){0,2}$")
_CHOICE = re.compile(r"(\([A-H]\)) +((?![*/^]|[+-] |\\(?!pi|infty|empty)[a-zA-Z]+ ?$|\\cdot|\\times|.*\([A-H]\)).*\S)")
_FUNCTION = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)")
_DIGIT_BEHIND = re.compile(r"(?<!_)[A-Za-hj-z)](?: ?[\^_] ?-?\d)? ?\d")
_MATHEMATICS = re.compile(  # what is not of it would be dropped by the parser, or be guessed
    rf"(?:\\(?:{'|'.join((*NOTATION['mathematics'].split(), *NOTATION['functions'].split(), *NOTATION['greek']))})"
    r"(?![a-zA-Z])|[A-Za-z0-9 {}()\[\]^_+*/|!',.:=&-]|\\\\)+"
)
_UNREAD_MARK = re.compile(
    r"(?!(?:[\d_{} ()+*/-]|\\times|\\cdot)*$).*[\d)] ?_"  # but 11_2 + 10_2
    r"|.*(?<!\d)(?<!\d )\^ ?\{? ?\\circ|.*(?:[\d)]|(?<![\\a-zA-Z])e) ?\^ ?(?:\{[^{}]*\}|\w) ?_"
    r"|.*\\(?:a?(?:sin|cos|tan)|cot|sec|csc|ln|exp) ?_|.*\\(?!text|be|en)[a-z]+ ?(?:\{[^{}]*\} ?)?\{ ?\}"
    r"|.*\\(?:frac ?\{[^{}]*\}|sqrt) ?\{[^{}]*\} ?[\d_]"
    r"|.*(?<![_\d])\d+ ?\{ ?\d|(?:.*[^\w}\] ^])? ?\{ ?\d+ ?\} ?\{? ?\d"
)
_AS_WRITTEN = re.compile(
    r"(?:\( ?(?:\d\d?|[a-z])(?: (?:\d\d?|[a-z]))+ ?\) ?)+|(?:\( ?\d+ ?\) ?){2,}|\d+(?: ?/ ?\d+){2,}"
    r"|(?:\\?\$ ?)?\d[\d.]*(?: ?- ?(?:\\?\$ ?)?\d[\d.]*)+(?: ?%| ?\\text ?\{[^{}]*\})?"
)
_TWO_SIGNS = re.compile(r"(?:[+-]|\\pm|\\mp) ?[+-]")
_PERIOD = re.compile(r"(?<![a-z\\])[kmn](?=(?:[+-]1\))?(?:\\pi|\^\\circ))|(?:(?<=\\pi )|(?<=\\circ ))[kmn](?![a-z^_])")
_LETTER_I = re.compile(r"(?<![a-zA-Z\\])i(?![a-zA-Z])")
_NO_CONSTANT = re.compile(  # an i that is an index, a unit vector or a current
    r".*_\{?i(?![a-z])|(?=.*(?<![a-zA-Z\\])i(?![a-zA-Z])).*(?<![a-zA-Z\\])j(?![a-zA-Z])"
    r"|(?!.*\\(?:sum|prod))(?=.*(?<![a-zA-Z\\])[A-Za-hj-z]).*(?<![a-zA-Z\\])i\^"
)
_CONJUNCTIONS = frozenset({"or", "and", "not", "if", "is", "to"})
_AT = r"(?:[a-zA-Z] ?=[- ]*)+(?:\\frac[- {]*|\\sqrt[ {]*)?\d[\d./{} ]*"
# Behind a value: where it is that, and the letters of what is counted.
_BEHIND_A_VALUE = re.compile(
    r"[ ,]+\(?(?:\\text ?\{)?[ (]*(?:(?:attained|achieved|reached) )?(?:at|when|for)[ }]+"
    rf"(?:{_AT}(?:, ?{_AT})*|\((?:[-\d./ ]+,)+[-\d./ ]+\))[ )}}]*$"
    rf"|\b(?P<of>{NOTATION['counted of a letter']})"
    r"(?: of| for)? ?\} ?(?:[a-zA-Z]|\( ?(?:[a-z] ?, ?)+[a-z] ?\))$"
)


def read_beside(gold: str, answer: str) -> tuple[Answer, Answer]:
    """A gold, and an answer to it, which may be read in the light of the gold."""
    right, given = read(gold), read(answer)
    spelled = notation.normalise_latex(answer) if isinstance(given.form, Unreadable) else ""
    if isinstance(right.form, Number) and (behind := _BEHIND_A_VALUE.search(spelled)):
        of = f"{behind['of']}}}" if behind["of"] else ""
        value = read(spelled[: behind.start()] + of)
        if "=" not in value.text and isinstance(getattr(value.form, "value", None), Fraction | Number):
            given = value
    if _NO_CONSTANT.match(right.text):
        right, given = (read(_LETTER_I.sub(r"\\varrho ", each.text)) for each in (right, given))
    units = [getattr(each.form, "unit", None) for each in (right, given)]
    if "" in units and any(units) and any(isinstance(each.form, Expression) for each in (right, given)):
        right, given = read(right.text), read(given.text)  # without its spaces 3 m g is a product
    adds_a_unit = units_in(given.form) and not units_in(right.form)
    if adds_a_unit and "\\text" not in given.text and _BARE_LETTER.search(given.text):
        given = replace(given, form=Unreadable("a letter behind a number may be a factor"))
    ours = getattr(right.form, "letter", "".join({*_PERIOD.findall(right.text)}))
    match given.form:
        case Quantified(letter=theirs) as form if len(ours) == 1 and theirs and ours not in form.text:
            text = re.sub(rf"(\\[a-zA-Z]+)|{theirs}", lambda found: found[1] or ours, form.text)
            return right, replace(given, form=replace(form, value=read_form(text), letter=ours))
    return right, given


@lru_cache(maxsize=4096)
def read(text: str) -> Answer:
    """The one reading of ``text``, an answer in LaTeX or as plain text; of a sentence with mathematics its text."""
    if _BARE_NUMBER.fullmatch(text):
        return Answer(text, Fraction(text), Number(Fraction(text)))
    spelled = notation.normalise_latex(text).lstrip("= ")
    form = read_form(spelled) if notation.balanced(spelled) else Unreadable("its brackets do not pair up")
    if _AS_WRITTEN.fullmatch(spelled):
        form = Unreadable("it may be a permutation, a score, a date or a range")
    if _TWO_SIGNS.search(spelled):
        form = Unreadable("+- may be ±")
    if notation.balanced(spelled) and (reason := unreadable_part(form)):
        plain, form = without_text(spelled), Unreadable(reason)
        if "\\text" in spelled and all(word[0].lower() in names.FUNCTIONS for word in _WORD.finditer(plain)):
            form = read_form(plain)
        else:
            spelled = plain
    value = form.value if isinstance(form, Number) and not form.unit else None
    return Answer(notation.without_spaces(spelled), value, form)


def read_form(text: str) -> Form:
    text = _ORDINAL.sub(r"\1", _CHECKED.sub(r"\1 = \2", _bare(text)))
    introduced, quantity = names.without_introduction(text)
    if quantity and not isinstance(named := read_form(introduced), Unreadable):
        return Named(quantity, named)
    if not text:
        return Unreadable("it is empty")
    if number := _number(text):
        return number
    if form := congruence(text) or quantities.date(text):
        return form
    if quantified := names.split_quantifier(text):
        value = read_form(quantified[0])
        return value if isinstance(value, Unreadable) else Quantified(value, *quantified[1:], quantified[0])
    if choice := _choice(text):
        return choice
    if chosen := _several_words(text):
        return chosen
    if words := names.words_in(text):
        if (numeral := names.NUMBERS.get(words.replace("-", " "))) is not None:
            return Number(Fraction(numeral))
        count, _, noun = words.partition(" ")
        if count in names.NUMBERS and (unit := quantities.unit_name(noun)) and "quarter" not in unit:  # three digits
            return Number(Fraction(names.NUMBERS[count]), unit)
        return _SETS_IN_WORDS.get(words, Words(words))
    if (split := quantities.split_unit(text)) and (number := _number(_bare(split[0]), split[1])):
        return number
    form = matrix(text) or several(text) or constant(text)
    form = form or in_braces(text) or in_brackets(text) or related(text) or union(text) or either_sign(text)
    return form or _based(text) or _measured(text) or _expression(text)


def _number(text: str, unit: str = "") -> Number | None:
    value = quantities.exact_number(text)
    return None if value is None else Number(value, unit, is_fraction="/" in text or "\\frac" in text)


def _bare(text: str) -> str:
    """Without braces and brackets around a single thing, without "the answer is", without closing punctuation."""
    while True:
        before, text = text, _ONLY.sub("", notation.without_full_stop(text)).strip()
        value, quantity = names.without_introduction(text)
        text = text if quantity else value
        if text[:1] in ("{", "(") and matching_end(text, 0) == len(text) and text[-1] in "})":
            inner = text[1:-1]
            if text[0] == "{" or not COMMA.search(inner):
                text = inner
        if (match := _NEGATIVE.fullmatch(text)) and quantities.exact_number(match["value"]) is not None:  # −(5)
            text = "-" + match["value"]
        if text == before:
            return text


def _several_words(text: str) -> Form | None:
    """``A and C``, ``Alice, Bob``: names or letters that are chosen, in any order."""
    if text.startswith(("\\text{", "\\text {")) and text.endswith("}") and text.count("{") == 1:
        text = text[text.index("{") + 1 : -1]
    pieces = [piece.strip() for piece in split_outside_brackets(text, SEPARATOR)]
    words = [names.words_in(f"\\text{{{piece}}}" if piece.istitle() else piece) for piece in pieces]
    named = tuple(Words(word) for word in words if word)
    joined = _joined(text)
    return Listing(named, alternatives=joined == "or", joined=joined) if 1 < len(pieces) == len(named) else None


def _choice(text: str) -> Form | None:
    match = _CHOICE.fullmatch(text)
    value = read_form(match[2]) if match and not re.fullmatch("[a-zA-Z]", match[2]) else None  # (B)k is a product
    words = value.text.split() if isinstance(value, Words) and value.text not in NOTATION["last choices"] else []
    # (C) a square, but not (C) fails
    if not names.are_known(words) or not {*words[-1:]} <= names.COUNTED_NOUNS.keys():
        return None
    readable = isinstance(value, Words | Number | Expression | Named | Relation | Row | Interval)
    return Named(match[1], value) if match and value and readable else None


def _based(text: str) -> Form | None:
    if (match := _BASED.fullmatch(text)) is None:
        return None
    base = re.sub(r"\\text|[ {}]", "", match[3] or match[4] or match[5])
    digits = (match[1] or match[2]).upper()
    if digits.isalpha() and not match[2] and (len(digits) < 2 or base not in ("11", "12", "13", "14", "15", "16")):
        return None
    base = str(names.NUMBERS.get(base, base))
    if base.isdigit() and any(int(digit, 36) >= int(base) for digit in digits):
        return None
    return Number(Fraction(int(digits))) if base == "10" and digits.isdigit() else Words(f"{digits}_{base}")


def _measured(text: str) -> Form | None:
    if (split := quantities.split_unit(text)) is None:
        return None
    if quantities.split_unit(split[0]) is not None:
        return Unreadable("it has two units")
    if split[1] == quantities.PERCENT and _is_sum(split[0]):
        return Unreadable("the percent sign may be of its last term")
    measured = read_form(split[0])
    if split[1] == quantities.DEGREE and _FUNCTION.search(split[0]):  # those of \cos 20^\circ belong to its argument
        return None
    if isinstance(measured, Expression) and not measured.unit:
        if split[1] == quantities.PERCENT:
            return Expression(f"\\frac{{{measured.latex}}}{{100}}")
        return Expression(measured.latex, split[1])
    return Unreadable("what has this unit is not a quantity")


def _expression(text: str) -> Form:
    text = text.lstrip("+ ")
    runs = {run.lower() for run in re.findall(r"(?<![A-Za-z\\])[A-Za-z]+", re.sub(r"_\{[a-z]+\}", "", text))}
    has_words = any(len(run) > 3 and run not in names.FUNCTIONS for run in runs) and "\\begin" not in text
    if has_words or runs & _CONJUNCTIONS:
        return Unreadable("it mixes words and mathematics")
    if not _MATHEMATICS.fullmatch(text) or _UNREAD_MARK.match(text):
        return Unreadable("it holds a sign that has no reading here")
    if _DIGIT_BEHIND.search(re.sub(r"\\[a-zA-Z]+", r"\\", text)):  # \log_10 has its base
        return Unreadable("x2, x^12 and x_12 may be a code, x^1 2 or x^{12}")
    terms = text.split(":")
    if len(terms) > 2 or (len(terms) > 1 and any(map(_is_sum, terms))):
        return Row((Words(":"), *map(read_form, terms)))  # equal term by term, and to no point
    if re.search(r"\\nabla ?\\(?:times|cdot)|(?<![_^\d.])(?<![_^] )\d[\d.]* \d", text):
        return Unreadable("a curl and a divergence are no products, and 2 3 may be a numeral")
    return Expression(text)


def _is_sum(text: str) -> bool:
    return len(split_outside_brackets(text.strip(" +-"), re.compile("[+-]"))) > 1


# Relations: names and values, inequalities, equations ----------------------------------------------------------------

_IN = re.compile(r"\\in(?![a-zA-Z])")
_SIGN = re.compile(r"<=|>=|(?<![\w)}])!=|[=<>]|\\(?:le|ge|ne|approx|equiv|sim)(?![a-zA-Z])")
_SIGNS = {"<=": "\\le", ">=": "\\ge", "!=": "\\ne"}
_ALONE = r"(?<![A-Za-z\\{{_]){}(?![A-Za-z_'(^])"  # x = 7x + 3 is to be solved for x
_TURNED = {">": "<", "\\ge": "\\le"}


def related(text: str) -> Form | None:
    """A relation, or what it says of a name; ``form`` reads the sides."""
    belongs = split_outside_brackets(text, _IN)
    if len(belongs) == 2 and is_name(belongs[0]):
        value = read_form(belongs[1])
        if isinstance(value, Row) and len(value.items) == 2 and not value.is_vector and "," not in belongs[0]:
            value = Interval(*value.items, left_closed=False, right_closed=False, is_pair=True)
        return Named(squeezed(belongs[0]), value)
    sides = [side.strip() for side in split_outside_brackets(text, _SIGN)]
    if len(sides) == 1:
        return None
    signs = [_SIGNS.get(sign[0], sign[0]) for sign in notation.outside_brackets(text, _SIGN)]
    if signs[-1] in ("\\approx", "\\sim") and set(signs[:-1]) <= {"="}:
        return _approximate(sides)
    if not all(sides) or any(sign in ("\\approx", "\\equiv", "\\sim") for sign in signs):
        return Unreadable("it is a chain of relations, or an approximate one")
    if set(signs) == {"="}:
        return _equated(sides)
    if len(sides) > 3:
        return Unreadable("it is a chain of relations")
    return _between(sides, signs) if len(sides) == 3 else _one_relation(sides[0], sides[1], signs[0])


def _approximate(sides: list[str]) -> Form:
    """``\\approx 3.14``, ``x \\approx 3.14``, ``\\sqrt2 \\approx 1.41``, ``x = \\sqrt2 \\approx 1.41``."""
    *exact, last = sides
    number = read_form(last)
    if not isinstance(number, Number) or not all(exact[1:]):
        return Unreadable("it is about what is not a number")
    if not exact[0]:
        return About(number)
    if len(exact) == 1 and is_name(exact[0]):
        return Named(squeezed(exact[0]), About(number))
    value = read_form(exact[0]) if len(exact) == 1 else _equated(exact)
    if isinstance(value, Named):
        return Named(value.name, Worked((), value.value, About(number)))
    return Worked((), value, About(number))


def _equated(sides: list[str]) -> Form:
    """What equals signs alone connect: a name and its value, with the steps between, or an equation."""
    if is_name(sides[0]) and not (len(sides[0]) == 1 and re.search(_ALONE.format(sides[0]), sides[-1])):
        steps = [side for side in sides[1:-1] if not ("(" in side and is_name(side))]  # f(f(6)) = f(2) = 1
        return Named(squeezed(sides[0]), _worked([*steps, sides[-1]]))
    if len(sides) > 2:
        asked_for = names.is_asked_for(sides[0])
        answer = _worked(sides[asked_for:])
        return Relation("=", sides[0], sides[-1], answer) if asked_for else answer
    left, right = sides
    if names.is_asked_for(right) and isinstance(read_form(left), Number):
        left, right = right, left
        if is_name(left):
            return Named(squeezed(left), read_form(right))
    if names.is_asked_for(left):
        value = read_form(right)
        is_condition = value == Number(Fraction(0))  # a + b + c = 0 is what a question starts from
        return value if isinstance(value, Unreadable) else Relation("=", left, right, None if is_condition else value)
    if not (_is_side(left) and (_is_side(right) or isinstance(read_form(right), Number))):
        return Unreadable("it mixes words or units and mathematics")
    return Relation("=", left, right, _worked(sides))


def _worked(sides: list[str]) -> Form:
    *steps, result = [read_form(side) for side in sides]
    if len(steps) == 1 and isinstance(steps[0], Number) and isinstance(result, Expression):  # 51 = 20 + 31
        steps, result = [result], steps[0]
    return Worked(tuple(steps), result) if steps else result


def _one_relation(left: str, right: str, sign: str) -> Form:
    if sign in _TURNED:
        left, right, sign = right, left, _TURNED[sign]
    if sign in ("<", "\\le") and is_name(left) and "|" not in left:
        return Named(squeezed(left), Interval(MINUS_INFINITY, read_form(right), False, sign == "\\le"))
    if sign in ("<", "\\le") and is_name(right) and "|" not in right:
        return Named(squeezed(right), Interval(read_form(left), INFINITY, sign == "\\le", False))
    if sign == "\\ne" and is_name(right) and not is_name(left):
        left, right = right, left
    if sign == "\\ne" and is_name(left) and "|" not in left and isinstance(point := read_form(right), Number | Listing):
        return Named(squeezed(left), reals_without(list(point.items) if isinstance(point, Listing) else [point]))
    if not (_is_side(left) and _is_side(right)):
        return Unreadable("it mixes words or units and mathematics")
    return Relation(sign, left, right)


def _is_side(text: str) -> bool:
    form = read_form(text)
    return not isinstance(form, Unreadable | Words) and not units_in(form)


def _between(sides: list[str], signs: list[str]) -> Form:
    if all(sign in _TURNED for sign in signs):
        sides, signs = sides[::-1], [_TURNED[sign] for sign in signs[::-1]]
    if not is_name(sides[1]) or "|" in sides[1] or not set(signs) <= {"<", "\\le"}:
        return Unreadable("it is a chain of relations")
    closed = [sign == "\\le" for sign in signs]
    return Named(squeezed(sides[1]), Interval(read_form(sides[0]), read_form(sides[2]), *closed))


# Lists, sets, intervals, points: what commas, braces, brackets, ∪ and ± hold together --------------------------------

COMMA = re.compile(r"[,;]")
_CONJUNCTION = re.compile(r"\\text ?\{ *(?:and|or) *\}|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z])")
SEPARATOR = re.compile(rf"{COMMA.pattern} ?(?:{_CONJUNCTION.pattern})|{COMMA.pattern}|{_CONJUNCTION.pattern}")
_EITHER = re.compile(r"\\(?:pm|mp)(?![a-zA-Z])")
_WITH_ERROR = re.compile(r"\(? ?-?\d[\d.]* ?\\pm ?\d[\d.]*")
_SET_SIGNS = {sign: re.compile(rf"\{sign}(?![a-zA-Z])") for sign in ("\\cup", "\\cap")}
_SUCH_THAT = re.compile(r" ?(?P<letter>\\?[a-z]+) ?(?:\\in ?\\mathbb ?\{?R\}? ?)?[:|]")
_WITHOUT = re.compile(r"(\\mathbb ?\{?R\}?|[\[(].*[\])]) ?(?:\\setminus|\\backslash|-) ?\\\{([^{}]*)\\\}")


def several(text: str) -> Form | None:
    """What commas, "and" and "or" separate."""
    text = TEXT.sub(r"\1", text) if "," in text and TEXT.fullmatch(text) else text
    pieces = split_outside_brackets(text, SEPARATOR)
    name, _, written = text.partition("=")
    if len(pieces) == 1 or (is_name(name) and isinstance(read_form(written), Number)):  # x = 10,080
        return None
    if not all(piece.strip() for piece in pieces) or len(set(map(_joined, _CONJUNCTION.findall(text)))) > 1:
        return Unreadable("a place in the list is empty, or it is joined by and, and by or")
    if re.search(r"\\mp(?![a-zA-Z])", text) and all("=" in piece for piece in pieces):  # x = ±1, y = ∓2
        return either_sign(text)
    items = [read_form(piece) for piece in pieces]
    values = [item.value if isinstance(item, Named) else item for item in items]
    own = {item.name if isinstance(item, Named) else "" for item in items}
    intervals = [value for value in values if isinstance(value, Interval)]
    points = tuple(value for value in values if isinstance(value, Number))
    if intervals and len(own) == 1 and len(intervals) + len(points) == len(values) and (joined := _joined(text)):
        if joined == "and":
            return Unreadable("inequalities that hold together")
        united = Union((*intervals, *([Listing(points, braces=True)] if points else ())))  # x < 0 or x = 1
        return Named(own.pop(), united) if own != {""} else united
    found = listing(items)
    order, period = [getattr(item, "name", "") for item in found.items], max(len(found.names), 1)
    # x = 1, y = 2; x = 3, y = 4
    if 1 < period < len(order) and order == order[:period] * (len(order) // period):
        return Listing(tuple(Listing(found.items[start : start + period]) for start in range(0, len(order), period)))
    semicolons, conjoined = (split_outside_brackets(text, sign) for sign in (re.compile(";"), _CONJUNCTION))
    later = semicolons * (len(semicolons) > 1) + conjoined[1:]
    if any(len(split_outside_brackets(part, COMMA)) > 1 for part in later):
        return Unreadable("its commas may not be of one list")
    letters = {name.partition("_")[0] for name in found.names}
    conditions = any(isinstance(value, Interval | Union | Relation) for value in values)
    joined = "or" if _EITHER.search(text) else _joined(text)
    return replace(found, alternatives=(len(letters) > 1 or conditions) and joined == "or", joined=joined)


def _joined(text: str) -> str:
    found = _CONJUNCTION.search(text)
    return "" if found is None else "or" if "or" in found[0] else "and"


def listing(items: list[Form], *, braces: bool = False) -> Listing:
    """What ± adds to a list is listed with the rest."""
    flat: list[Form] = []
    for item in items:
        if isinstance(item, Listing) and not item.braces:
            flat.extend(item.items)
        elif isinstance(item, Listing) and braces:  # {{1}} is not {1}
            flat.append(Union((item,)))
        elif isinstance(item, Named) and isinstance(item.value, Listing) and not item.value.braces:
            flat.extend(Named(item.name, value) for value in item.value.items)
        else:
            flat.append(item)
    return Listing(tuple(flat), braces)


def constant(text: str) -> Form | None:
    """∅, ℝ, ℝ⁺, ∞."""
    if text in ("\\emptyset", "\\{\\}", "\\{ \\}"):
        return EMPTY_SET
    if text in ("\\mathbb{R}", "\\mathbb R"):
        return REALS
    unsigned = text.lstrip("+-").strip()
    if unsigned == "\\infty" or names.words_in(unsigned) == "infinity":
        return MINUS_INFINITY if text.startswith("-") else INFINITY
    return None


def in_braces(text: str) -> Form | None:
    """A set in braces, by its elements or by a condition, or ℝ without some."""
    if not text.endswith("\\}"):
        return None
    if text.startswith("\\{") and matching_end(text, 1) == len(text):
        condition = _SUCH_THAT.match(text[2:-2])
        if condition:
            form = read_form(text[2:-2][condition.end() :])
            named = form.value if isinstance(form, Quantified) else form
            is_of_it = isinstance(named, Named) and named.name == condition["letter"]
            return form if is_of_it else Unreadable("its condition is not one on its letter")
        return listing([read_form(piece) for piece in split_outside_brackets(text[2:-2], COMMA)], braces=True)
    excluded = _WITHOUT.fullmatch(text)
    whole = read_form(excluded[1]) if excluded else None
    if excluded is None or not isinstance(whole, Interval):
        return None
    return reals_without([read_form(piece) for piece in excluded[2].split(",")], whole)


def reals_without(points: list[Form], whole: Interval = REALS) -> Form:
    """An interval, ℝ above all, less some plain numbers, as a union of intervals."""
    inside = [point for point in points if isinstance(point, Number) and _is_between(point, *whole.ends)]
    if len(inside) < len(points):
        return Unreadable("it excludes what is not a plain number within")
    ends: list[Form] = [whole.left, *sorted(inside, key=lambda number: number.value), whole.right]
    pieces = [Interval(left, right, False, False) for left, right in pairwise(ends)]
    pieces[0] = replace(pieces[0], left_closed=whole.left_closed)
    pieces[-1] = replace(pieces[-1], right_closed=whole.right_closed)
    return Union(tuple(pieces))


def _is_between(point: Number, left: Form, right: Form) -> bool:
    above = left == MINUS_INFINITY or (isinstance(left, Number) and left.value < point.value)
    return above and (right == INFINITY or (isinstance(right, Number) and point.value < right.value))


def in_brackets(text: str) -> Form | None:
    """A point or an interval; ``(\\pm 1, \\mp 2)`` and ``\\pm(1, -2)`` are two points."""
    if text[0] == "(" and _EITHER.search(text):
        return either_sign(text) if matching_end(text, 0) == len(text) and "," in text else None
    if text.startswith("\\angled("):
        row = in_brackets(text.removeprefix("\\angled"))
        return replace(row, is_vector=True) if isinstance(row, Row) else None
    if text[0] in "+-" and (rest := text[1:].strip()).startswith("(") and matching_end(rest, 0) == len(rest):
        pieces = split_outside_brackets(rest[1:-1], COMMA)
        return Row(tuple(read_form(f"{text[0]}({piece})".lstrip("+")) for piece in pieces)) if len(pieces) > 1 else None
    if text[0] not in "([" or matching_end(text, 0) != len(text):
        return None
    if ";" in text and (text[0] == "[" or "," in text):
        return Unreadable("it may be a continued fraction")
    items = tuple(read_form(piece) for piece in split_outside_brackets(text[1:-1], COMMA))
    if len(items) == 1:
        return None
    square = (text[0] == "[", text[-1] == "]")
    if len(items) == 2 and (any(square) or {INFINITY, MINUS_INFINITY} & set(items)):
        return Interval(*items, *square)
    if square[0] != square[1]:
        return Unreadable("its brackets are unlike")
    return Row(items)


def union(text: str) -> Form | None:
    """What ∪ unites, or ∩ has in common."""
    for sign, pattern in _SET_SIGNS.items():
        pieces = split_outside_brackets(text, pattern)
        if len(pieces) > 1:
            return Union(tuple(read_form(piece) for piece in pieces), sign)
    return None


def either_sign(text: str) -> Form | None:
    """The two values that ± means."""
    if not _EITHER.search(text):
        return None
    if (error := _WITH_ERROR.match(text)) and ("." in error[0] or "\\text" in text):
        return Unreadable("a measurement and its error are not two values")
    if 1 < len(_EITHER.findall(text)) < 4 and not re.search(r"\\mp(?![a-zA-Z])|,", text):  # each for itself
        return listing([read_form(_EITHER.sub(sign, text, count=1)) for sign in ("+", "-")])
    upper = re.sub(r"\\pm(?![a-zA-Z]) ?", "+", re.sub(r"\\mp(?![a-zA-Z]) ?", "-", text))
    lower = re.sub(r"\\pm(?![a-zA-Z]) ?", "-", re.sub(r"\\mp(?![a-zA-Z]) ?", "+", text))
    return Listing((read_form(upper), read_form(lower)))


# Matrices and vectors ------------------------------------------------------------------------------------------------

_MATRIX = re.compile(r"\\begin ?\{([pbB]?matrix|smallmatrix|array)\} ?(?:\{[lcr| ]*\})?(.*)\\end ?\{\1\}", re.DOTALL)
_COMMA = re.compile(",")


def matrix(text: str) -> Form | None:
    """A matrix, with ``form`` reading its entries."""
    if text.startswith("[") and text.endswith("]") and matching_end(text, 0) == len(text):
        rows = [piece.strip() for piece in split_outside_brackets(text[1:-1], _COMMA)]
        if all(row.startswith("[") and row.endswith("]") for row in rows):
            return Matrix(tuple(tuple(map(read_form, split_outside_brackets(row[1:-1], _COMMA))) for row in rows))
    inner = text[1:-1] if text[0] + text[-1] in ("()", "[]") else text
    if (match := _MATRIX.fullmatch(inner.strip())) is None:
        return None
    lines = [line for line in re.split(r"\\\\(?: ?\[\d+ ?[a-z]+\])?|\\cr(?![a-zA-Z])", match[2]) if line.strip()]
    return Matrix(tuple(tuple(read_form(entry) for entry in line.split("&")) for line in lines))


# Congruences ---------------------------------------------------------------------------------------------------------

_MODULUS = re.compile(
    r"(?P<value>.*\S)[ ,]*(?:\\pmod|\(? ?\\b?mod(?![a-z])|\(? ?(?<![a-zA-Z\\])mod(?:ulo)?(?![a-zA-Z])"
    r"|\(? ?\\text ?\{ *\(? *mod(?:ulo)? *\}|\\text ?\{ *\(? *mod(?:ulo)?(?= ?\d))"
    r" ?\{? ?(?P<modulus>\d{1,9})[ )}]*"
)
_EQUIVALENT = re.compile(r"(?:(?P<name>[^=]*?) ?(?:\\equiv|=))? ?(?P<residues>[^=]*)")


def congruence(text: str) -> Form | None:
    """A congruence whose residues and modulus are plain integers; ``form`` reads the residues."""
    match = _MODULUS.fullmatch(text)
    if match is None or "mod" in match["value"] or int(match["modulus"]) < 2:
        return None
    sides = _EQUIVALENT.fullmatch(match["value"].replace("\\equiv", " \\equiv "))
    name = sides and sides["name"]
    if sides is None or (name and not is_name(name) and re.search("[a-zA-Z]", re.sub(r"\\[a-z]+", "", name))):
        return None
    residues = read_form(sides["residues"].strip())
    items = residues.items if isinstance(residues, Listing) else (residues,)
    if name and not is_name(name):
        power = int(name) if name.isdigit() else quantities.product_of_powers(name)
        if power is None or residues != Number(Fraction(power % int(match["modulus"]))):
            return None
    whole = [item.value for item in items if isinstance(item, Number) and not item.unit and item.value.denominator == 1]
    modulus = int(match["modulus"])
    if not whole or len(whole) < len(items) or not (name or 0 <= min(whole) <= max(whole) < modulus):
        return None
    found = Congruence(tuple(sorted({int(value) % modulus for value in whole})), modulus)
    return Named(squeezed(name), found) if name and is_name(name) else found


# Sentences with mathematics in them ----------------------------------------------------------------------------------

_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}(?:'[a-z]+)?")
_CAPITAL_FIRST = re.compile(r"(?<![\\A-Za-z])[A-Z](?=[a-z]{2,}(?![A-Za-z]))|(?<!\S)(?<!\S )[A-Z](?=[a-z][ ,])")


def without_text(text: str) -> str:
    r"""``text`` without ``\text``, capitals at the start of words, hyphens in words, full stops and needless braces."""
    plain = re.sub(r"(?<=[A-Za-z]{3})-(?=[A-Za-z]{3})", " ", TEXT.sub(r" \1 ", text))
    plain = _CAPITAL_FIRST.sub(lambda capital: capital[0].lower(), re.sub(r"(?<=[A-Za-z]{3})[.:](?= |$)", "", plain))
    return re.sub(r"\{(\w)\}", r"\1", notation.without_full_stop(" ".join(plain.split())))
