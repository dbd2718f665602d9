"""Words: names that stand before a value, quantifiers after it, and answers that are words."""

import re
from collections.abc import Iterable
from fractions import Fraction
from itertools import dropwhile, takewhile
from math import inf

from evenkeel.rewards.verifiers.math_answer.notation import NOTATION, TEXT

_GREEK = "|".join([*(name for name in NOTATION["greek"] if name != "pi"), "varphi", "ell"])
_LETTER = rf"(?:[A-Za-z]|\\(?:{_GREEK}))"
_FUNCTION = r"\\(?:sin|cos|tan|cot|sec|csc|det)"
_ANGLE = rf"(?:[A-Z]|\\(?:{_GREEK}))"  # \sin x = 1 is an equation to solve, \sin A = 1 is what was asked for
_INDEX = r"(?: ?_ ?(?:\w|\{[^{}]*(?:\{[^{}]*\}[^{}]*)?\}|\\[a-z]+(?: ?\{[A-Za-z]+\})?))"
_ARGUMENTS = r"(?: ?(?:\((?:[^()=]|\((?:[^()=]|\([^()=]*\))*\)){1,30}\)|\[[^\[\]=]{1,30}\]))"
_CORE = (
    rf"(?:m ?)?(?:\\angle ?)?(?:\\Delta ?)?(?:{_LETTER}|\{{ ?{_LETTER} ?\}}|[A-Z]{{2,4}}"
    r"|\\text ?\{[A-Za-z' ]+\}(?: ?[A-Z]{2,4})?|\\mathbb ?\{[EP]\}|\\(?:overline|vec|hat|tilde) ?\{[A-Za-z]+\})"
)
_NAMES = (
    rf"{_CORE}{_INDEX}?'*{_ARGUMENTS}?",
    rf"(?:[fgh]|[A-Z]|\\(?:phi|varphi|psi)){_INDEX}? ?\^ ?\{{-1\}}{_ARGUMENTS}?",
    r"(?:P|\\Pr|\\mathbb ?\{P\}|\\text ?\{Pr?\}) ?[(\[].{1,30}[)\]]",
    rf"\\(?:gcd|max|min|deg|dim|arg|det){_INDEX}?(?: ?[a-zA-Z](?![a-z]))?{_ARGUMENTS}?",
    rf"{_FUNCTION} ?(?:{_ANGLE}|\( ?{_ANGLE} ?\)|\\angle ?[A-Z]{{1,3}})",
    r"\\frac ?\{ ?(?:d|\\partial ?)\w ?\} ?\{ ?(?:d|\\partial ?)\w ?\}|\\nabla ?\w",
    rf"\\# ?{_CORE}|\\Delta|\\sigma ?\^ ?\{{?2\}}?",
    rf"\( ?{_LETTER}{_INDEX}?(?: ?, ?{_LETTER}{_INDEX}?)+ ?\)",
    rf"\( ?[^()=]{{1,30}} ?\) ?_ ?\{{? ?(?:\\text ?\{{)? ?\\?(?:min|max) ?\}}*|{_LETTER} ?\^\\circ",
    rf"\|[^=\d]{{0,24}}[A-Z][^=\d]{{0,24}}\|{_INDEX}?",
    rf"\| ?(?:[^|]{{0,12}}[A-Z][^|]{{0,12}}|[zw]|\\(?:vec|overline) ?\{{\w+\}}) ?\|{_INDEX}?",
    r"\\\|[^|]{1,20}\\\||\[[^\[\]=\d+-]*[A-Z][^\[\]=\d+-]*\]",
    r"\\(?:max|min|sup|inf)(?![a-z])[^=]{1,30}|\\# ?\\\{[^=]{1,20}\\\}",
    r"\\l(?:floor|ceil)(?![a-z]) ?(?:[^=]{0,20}[A-Z][^=]{0,20}|10+ ?\w) ?\\r(?:floor|ceil)",
)
_NAME = re.compile("|".join(_NAMES))
_PLAIN = re.compile(
    rf"(?:(?:m?\\angle|\\Delta)?(?:{_LETTER}|[A-Z]{{2,4}}|\\(?:overline|hat|vec)\{{?[A-Z]+\}}?)"
    r"(?:_[^'^]*)?(?:\^-1(?=\())?(?:\([^']*\))?"
    r"|[A-Za-z]{3,}.*|\([^']*\)(?:_\{?\\?(?:min|max)\}?)?|E?\[.*\]"
    r"|[a-z]\^\\circ|[^':]+:[^':]+|\\sigma\^2|\\lfloor.*"
    r"|\\(?:max|min|gcd|lim|det|frac).*)"
)
_WITHIN = (  # what a quantity of such a name can be
    (re.compile(r"P[(\[](?!\d+\)$).*|\\Pr.*"), 0, 1),
    (re.compile(r"\\(?:sin|cos)[^']*"), -1, 1),
    (re.compile(r"\\tan[^']*"), -inf, inf),
    (re.compile(r"\|.*\||\\\|.*\\\||\\#.*|\|.*\|_.*"), 0, inf),
)
_RATIO = re.compile(rf"{_CORE}{_INDEX}?(?P<power> ?\^ ?\d)?(?: ?: ?{_CORE}{_INDEX}?(?(power) ?\^ ?\d))+")
_FACTOR = re.compile(
    rf"(?>(?:{_LETTER}{_INDEX}?{_ARGUMENTS}|\|?[A-Z]{{2}}\|?|{_LETTER}{_INDEX}?|\\[cl]?dots)'*)"  # AB is read one way
)
_TERMS = re.compile(rf"(?:(?>[+-]? ?(?:10+ ?)?|\\cdot ){_FACTOR.pattern}(?: ?\^ ?\d)?+ ?)++")
_QUOTIENT = re.compile(r"\\frac ?\{(.{1,20})\} ?\{(.{1,20})\}|([^/]{1,20})/([^/]{1,20})")
_OF_THE_QUESTION = re.compile(  # \sum_{k=1}^{20} b_k of its terms, 5 \star 1 of its operation
    r"\\(?:sum|prod|lim) ?(?:[_^] ?(?:\{[^{}]*\}|\w|\\infty) ?)+(?!\w(?: ?\^|$))"
    rf"\(?(?:{_NAME.pattern})\)?(?: ?\^ ?\{{?\d\}}?)?"
    rf"|{NOTATION['defined operations']}"
)
_COMPUTED = re.compile(r"(?:\\(?:gcd|max|min|sup|inf|#)|\\text ?\{[a-z]+\}) ?\\?[({][^a-zA-Z]*\d[^a-zA-Z]*")
_INTRODUCTION = re.compile(
    rf"\\text ?\{{(?P<start>[^{{}}]*)\}} ?"
    rf"(?P<name>{_CORE}{_INDEX}?) ?\\text ?\{{(?P<end> *(?:is|are|equals)) *\}}"
    rf"|\\text ?\{{(?P<of>[^{{}}]*(?:of|{NOTATION['extremes']})) *\}}"
    rf" ?(?:(?:\\triangle ?)?[A-Z]{{3,5}}|{_LETTER}{_INDEX}?(?: ?\^ ?\{{?\d\}}?)?) ?="
    r"|\\text ?\{(?P<words>[^{}]*(?:\b"
    r"(?:is|are|equals|be|get|have|given by|(?:equal|[a-z]+s|[a-z]+s up) to)|[:=])) *\}"
    r"|(?:the |final )*answer(?: is|:)"
    r"|\\text ?\{(?! *and *\})(?P<connective>[^{}]+)\}(?= ?\S)",
    re.IGNORECASE,
)
_IN_WORDS = {name: frozenset(words.split()) for name, words in NOTATION["introductions"].items()}
COUNTED_NOUNS: dict[str, str] = {
    **{word + "s": word for word in NOTATION["counted"]["plural"].split()},  # 16 square, 5 prime would say more
    **{
        form: word
        for word in NOTATION["counted"][""].split()
        for form in (word, word + "s", re.sub("(?<=[sxzo])$|(?<=[cs]h)$", "es", word), re.sub("y$", "ies", word))
    },
    **{form: word for word, forms in NOTATION["counted"]["irregular"].items() for form in (word, *forms.split())},
}
ADJECTIVES = frozenset(NOTATION["counted"]["adjective"].split())
_GIVEN_NAMES = "|".join(NOTATION["given names"].split())
_QUANTITY = (
    {*_GIVEN_NAMES.lower().split("|")} | _IN_WORDS["quantities"] | _IN_WORDS["adjectives"] | _IN_WORDS["ordinals"]
)
_OF_WHAT = (_QUANTITY | _IN_WORDS["links"] | _IN_WORDS["clauses"] | COUNTED_NOUNS.keys() | ADJECTIVES) - {
    "value",
    "values",
}
_PHRASES = re.compile(rf"\b(?:{'|'.join(NOTATION['introductory phrases'])})\b")
_BEFORE_A_VALUE = re.compile(r"(?<=[a-z]) (?=(?:\\?\$ ?)?-?\d)")
_ORDINAL = re.compile(r"\b\d+(?:st|nd|rd|th)\b|\b\d+ (?=[a-z]+s\b)")
_MEASURES = {name: units.split() for names, units in NOTATION["measures"].items() for name in names.split()}
_ANSWER = frozenset({"answer", "answers", "ans", "result", "mine"})
_OF_ANOTHER = re.compile(NOTATION["of another"])
_DOUBTFUL = "?"
_PROBABILITY = re.compile(r"\\?(?:P|Pr|mathbb ?\{P\}|text ?\{Pr?\}) ?[(\[]")
_INTRODUCED_TEXT = re.compile(r"\\text ?\{ *(?:the |final )*answer(?: is|:) *([^{}]+)\}", re.IGNORECASE)
_SET = r"\\in ?(?:\\mathbb ?)?\{? ?(?P<set>[ZNRQC]) ?\}?(?: ?[\^_] ?\{? ?(?P<above>[*+]) ?\}?)?"
_GLUE = r"(?:[ ,}]|\\text ?\{)*+"
_KIND = NOTATION["kind of number"]
_QUANTIFIERS = (
    re.compile(rf"(?:[,;]|(?P<open>\()) ?(?P<name>[a-z]) ?{_SET} ?(?(open)\))$"),
    re.compile(rf"[,;]? ?\\forall ?(?P<name>[a-z])(?: ?{_SET})?$"),
    re.compile(
        rf"(?:[,;(]|\\text ?\{{| )*+(?:where{_GLUE}(?P<where>[a-zA-Z]){_GLUE}is (?:an? |any )?"
        rf"|for{_GLUE}(?:all|any|every|each|some){_GLUE})(?:arbitrary |values of )?(?P<kind>{_KIND})?"
        rf"{_GLUE}(?P<name>[a-zA-Z])?{_GLUE}(?:{_SET})?{_GLUE}\)?$"
    ),
    re.compile(rf"(?:[,;(]|\\text ?\{{| )*+(?:where|for|with){_GLUE}(?P<name>[a-zA-Z]){_GLUE}{_SET}{_GLUE}\)?$"),
)
_KINDS: dict[str, str] = NOTATION["kinds of numbers"]

FUNCTIONS = frozenset(NOTATION["functions"].split())
NUMBERS: dict[str, int | Fraction] = NOTATION["numbers"] | {
    f"{count} {part}": Fraction(value, divisor)
    for count, value in NOTATION["numbers"].items()
    for part, divisor in NOTATION["parts"].items()
}
CHANGING = frozenset(NOTATION["changing"].split())
"""Words that may make another value of the one beside them, or deny it."""
PEOPLE = frozenset(NOTATION["people"].split())
_ACTS = NOTATION["acts"]
CLAUSE = re.compile(  # students take physics, students who are in the band
    r"(?P<counted>[a-z -]+?) (?:who |that |which )?"
    rf"(?P<clause>(?:{_ACTS}|{NOTATION['places']})(?: .+)?)"
)
_SOMEONE = rf"(?:[Hh]e|[Ss]he|[Tt]hey|{_GIVEN_NAMES})"
_SENTENCE = re.compile(  # Tom has, each child gets, the pen costs, Alice is, Tom:
    rf" *(?:(?:{_SOMEONE}|(?:[Tt]he|[Ee]ach|An?) (?P<who>[a-z ]+?)) {_ACTS}(?: at)?"
    rf"|{_SOMEONE} (?:is|are|will be)|(?:{_GIVEN_NAMES}) ?:) *"
)
_ARTICLE = re.compile(r"^(?:An?(?! [a-z]*[^su ]s\b)|The) (?=\w)|(?<!\S)(?:an?|the) ")
_TIME_OR_RATIO = re.compile(r"\d+(?: ?: ?\d+)+|(?:0?\d|1[0-2])(?: ?: ?\d+)+ ?[ap]m|\d+ to \d+")
_VERDICTS: dict[str, str] = {
    spelling: verdict for verdict, others in NOTATION["verdicts on series"].items() for spelling in (verdict, *others)
}
_OF_A_SERIES = re.compile(NOTATION["of a series"])
_RUN = re.compile(r"[A-Za-z]+")
_INDICES = {"out", "kin", "pot", "eff", "tot", "avg", "rms"}
_SAYING = re.compile(r"\b(?:[A-Za-z][a-z]{2,}|[A-Z]{5,}|[Nn]o|or|NO[TNR]?|OR)\b")
_NO_WORDS = re.compile(r"[\\=<>^_{}+*/|,;\[\]]")


def is_name(text: str) -> bool:
    """Whether ``text`` names a value and is not an expression to solve for something: ``x^2`` and ``2x`` do not."""
    text = text.strip()
    return bool(_NAME.fullmatch(text) or _RATIO.fullmatch(text)) and not _COMPUTED.fullmatch(text)


def is_asked_for(text: str) -> bool:
    r"""Whether ``text`` may be what a question asks for: a name, or a sum or product of different names.

    ``x+y``, ``ab`` and ``f(1)+f(2)`` are; ``x^2``, ``2x``, ``x+1`` and ``3x+4y`` are equations' sides, to be solved.
    """
    text = text.strip()
    if is_name(text) or _OF_THE_QUESTION.fullmatch(text):
        return True
    if quotient := _QUOTIENT.fullmatch(text):
        above, below = (part.strip() for part in quotient.groups() if part)
        return above != below and not {above, below} <= set("xyz") and is_asked_for(above) and is_asked_for(below)
    runs = re.findall(r"(?<![A-Za-z\\])[A-Za-z]{4,}", text)
    if any(list(run) != sorted(set(run)) for run in runs):  # no product is written so, as abcd is
        words = re.sub(r"\b[A-Za-z]\b|\b[A-Z]+\b", "", text)
        return not _IN_WORDS["quantities"].isdisjoint(words.lower().split()) and name_a_quantity(words)
    return _TERMS.fullmatch(text) is not None and len(set(_FACTOR.findall(text))) > 1


def squeezed(text: str) -> str:
    r"""A name in one spelling; marked where its words may say something else of the value than its name."""
    name, _, arguments = ("P", "", "") if _PROBABILITY.match(text) else re.split(r"([(\[]|$)", text, maxsplit=1)
    named = [words for words in TEXT.findall(name) if len(words.strip()) > 1]
    beside = [
        *TEXT.findall(arguments),
        *re.findall(r"(?<=_\{)[A-Za-z]+|[A-Z]{2,4}", name),
        *(named if "_" in name else ()),
    ]
    words = [word.lower() for word in _SAYING.findall(" ".join(beside))]
    is_known = are_known(word for word in words if word not in _INDICES) and (
        "_" in name or all(map(name_a_quantity, named))
    )
    name, *arguments = re.split(r"(?=[(\[])", text, maxsplit=1)
    text = re.sub(r"[{}]", "", name) + re.sub(r"\{ ?(\w|\\[a-z]+) ?\}", r"\1", "".join(arguments))
    squeezed_text = re.sub(r"^\|([A-Z]{2})\|$", r"\1", re.sub(r"\\text|\\(?=max|min)|\s", "", text))
    return squeezed_text if is_known else _DOUBTFUL + squeezed_text


def is_doubtful(name: str) -> bool:
    """Whether a name in the spelling of `squeezed` may not be left out: it may deny the value, or be no name at all."""
    return name.startswith(_DOUBTFUL)


def name_a_quantity(words: str) -> bool:
    """Whether ``words`` name what a value is of, and say nothing else of it: "the area of the circle is", "so we get".

    All words have to be known: a quantity, and behind "of" and its like other quantities, what is counted and letters.
    """
    found = _without_connectives(re.sub(r"['’]s\b|(?<=[a-z]) (?!NO|OR|IF)[A-Z]{2}\b", "", words))
    while found and found[-1] in _IN_WORDS["after"]:
        found = found[:-1]
    if _ANSWER & set(found):
        return set(found) <= _ANSWER | _IN_WORDS["of answers"]  # not the sum of the answer and one
    end = next((index for index, word in enumerate(found) if word not in _QUANTITY), len(found))
    name, of = found[:end], found[end:]
    if (of and of[0] not in _IN_WORDS["links"]) or not are_known(of):
        return False
    if _OF_ANOTHER.search(words) or ({"value", "values"} & set(name) and _IN_WORDS["ordinals"] & set(name)):
        return False
    return not found or not _IN_WORDS["quantities"].isdisjoint(name)


def measure_of(name: str) -> list[str]:
    """The units in which a quantity in words, never below zero, may be given; none of a change or another."""
    words = list(takewhile(lambda word: word not in _IN_WORDS["links"] | _IN_WORDS["after"], name.split()))
    return [] if not words or {"net", "expected"} & {*words} else _MEASURES.get(words[-1], [])


def are_known(words: Iterable[str]) -> bool:
    """Whether all words are quantities, what is counted, adjectives, what links these, or letters."""
    return all(word in _OF_WHAT or (len(word) == 1 and word.isalpha()) for word in words)


def _tells_of_someone(words: str) -> bool:
    """Whether ``words`` say whose the value behind them is: "Tom has", "each child gets", "the pen costs"."""
    if (sentence := _SENTENCE.fullmatch(words)) is None:
        return False
    who = {*(sentence["who"] or "").split()}
    return who <= COUNTED_NOUNS.keys() | ADJECTIVES | PEOPLE and not who & (CHANGING | _QUANTITY)


def _without_connectives(words: str) -> list[str]:
    """The words without "so", "hence we get", "in total" at their start, which say nothing of a value."""
    words = _ORDINAL.sub("", _PHRASES.sub("", words.lower()))
    found = re.findall(r"[a-z'’]+|[^a-z'’\s]", words.strip(" .,:="))
    return list(dropwhile(lambda word: word in _IN_WORDS["before"] or word == ",", found))


def is_plain_name(name: str, letters: set[str], value: Fraction | None) -> bool:
    """Whether a name of its own, beside a value with these letters, says no more than that it is the value."""
    name = re.sub(r"^([a-zA-Z])'(?=\(|$)", r"\1", name)  # a derivative
    for pattern, least, most in _WITHIN:
        if pattern.fullmatch(name):
            return value is None or least <= value <= most
    argument = re.search(r"\(([a-z])\)$", name)
    return (
        name not in letters
        and _PLAIN.fullmatch(name) is not None
        and (argument is None or not letters or argument[1] in letters)
    )


def same_name(one: str, other: str) -> bool:
    """Whether two names are one; an index in words, ``v_max``, may be left out."""
    one, other = (re.sub(r"^m?\\angle", "", name) for name in (one, other))
    if one == other or re.fullmatch(rf"(?<![A-Z]){re.escape(min(one, other))}\([a-z]\)", max(one, other)):  # y(x) is y
        return True
    (base, _, index), (other_base, _, other_index) = one.partition("_"), other.partition("_")
    return base == other_base and "" in (index, other_index) and (index or other_index)[1:].isalpha()


_CUSTOMARY = [tuple(order) for order in NOTATION["customary orders"]]
_GREEK_ORDER = [f"\\{name}" for name in NOTATION["greek"]]


def in_customary_order(names: tuple[str, ...]) -> tuple[str, ...]:
    """The order in which coordinates of these names are given: neighbours in the alphabet, and numbered letters, as
    they follow one another, (r, θ) and the like as they are known; others as they are written."""
    for order in _CUSTOMARY:
        if set(order) == set(names):
            return order
    letters, _, indices = zip(*(name.partition("_") for name in names), strict=True)
    if len(set(letters)) == 1 and all(index.isdigit() for index in indices):
        return tuple(sorted(names, key=lambda name: int(name.partition("_")[2])))
    places = [
        _GREEK_ORDER.index(name) if name in _GREEK_ORDER else ord(name) if len(name) == 1 else -1 for name in names
    ]
    if min(places) >= 0 and max(places) - min(places) == len(names) - 1:
        return tuple(name for _, name in sorted(zip(places, names, strict=True)))
    return names if min(places) >= 0 and not {*names} <= {*"xyz"} else ()


def without_introduction(text: str) -> tuple[str, str]:
    """``text`` without "the answer is" and the like before it, and the quantity that such words name: "the area is"."""
    if inside := _INTRODUCED_TEXT.fullmatch(text):
        return inside[1], ""
    joined = _with_value_apart(text)
    if (introduction := _INTRODUCTION.match(joined)) is None:
        return text, ""
    words, of = introduction["connective"], introduction["of"]
    if words:
        says_something = bool(_without_connectives(words))
    else:
        of = of and of + (" x" if of.endswith(" of") else " number")
        words = introduction["words"] or of or f"{introduction['start'] or ''} x {introduction['end'] or ''}"
        unfinished = words.split()[-1:] and words.split()[-1].lower() in _IN_WORDS["links"]
        says_something = unfinished or not name_a_quantity(words)
    value = joined[introduction.end() :].strip()
    if says_something and not (_tells_of_someone(words) and "," not in value):
        return text, ""
    named = _without_connectives(words)
    return value, "" if _ANSWER & set(named) else " ".join(named)


def _with_value_apart(text: str) -> str:
    r"""``\text{The area is 5}`` with its value behind the text."""
    sentence = TEXT.sub(r"\1", text) if TEXT.fullmatch(text) else text
    for space in _BEFORE_A_VALUE.finditer(sentence):
        words, value = sentence[: space.start()], sentence[space.end() :]
        says_what = name_a_quantity(words) and words.split()[-1] in _IN_WORDS["after"]
        if says_what or _tells_of_someone(words):
            return f"\\text{{{words}}} {value}"
    return text


def split_quantifier(text: str) -> tuple[str, str, str] | None:
    r"""What holds for all of a letter, the set it is of (``Z``, ``N`` …, empty where it is not said), and the letter.

    ``f(x)=2x`` of "f(x)=2x for all x", ``3k`` and ``Z`` of ``3k, k \in \mathbb{Z}``; ``some Z`` of "for some integer",
    but not of a constant. ``None`` without a quantifier, and where its letter is none of the text's.
    """
    match = next((match for pattern in _QUANTIFIERS if (match := pattern.search(text))), None)
    if match is None or not (before := text[: match.start()].strip()):
        return None
    found = match.groupdict()
    name = found["name"] or found.get("where")
    if name and not re.search(rf"(?<![A-Za-z\\]){name}|{name}(?![A-Za-z])", before):
        return None
    kind = (found.get("kind") or "").split(" ")[0].rstrip("s").partition("-")[0]
    some = "some" in match[0] and kind != "constant" and name not in set("abcdCK")
    domain = f"{found['set']}{found['above'] or ''}".replace("N*", "N+") if found["set"] else _KINDS.get(kind, "")
    return before.rstrip(",; "), f"some {domain}" if some else domain, name or ""


def words_in(text: str) -> str | None:
    r"""The words of a text in the spelling of `notation.normalise_latex`, in one spelling; ``None`` if there are none.

    ``\text{…}`` holds words; without it a run of letters is a word where it is not a product of variables by the look
    of it: three letters or more, not in alphabetical order, no function's name. Case, articles and full stops do not
    count; the case of a single letter does.
    """
    plain = " ".join(TEXT.sub(r" \1 ", text).split())
    lowered = _ARTICLE.sub("", plain)  # Team A, R > r
    lowered = re.sub(r"((?<=[A-Za-z] )A(?!\w)|\b[B-HJ-Z]\b)|.", lambda run: run[1] or run[0].lower(), lowered)
    lowered = " ".join(re.sub(r"(?<=\b[a-z])\.|\.(?=\s|$)", "", lowered).split())
    lowered = re.sub(r"^(\d{1,2}) ?(?=[ap]m$)", r"\1:00 ", lowered)
    lowered = "does not exist" if lowered == "dne" else lowered
    lowered = re.sub("^(?:there (?:is|are) (?=no )|(?:it|this|they) (?:is|are) |facing )", "", lowered)
    if _TIME_OR_RATIO.fullmatch(lowered):  # 3:30 p.m. as 15:30pm, so that it is no ratio
        lowered = re.sub(r"^(?:0?\d|1[01])(?= ?:.*pm)", lambda hour: str(int(hour[0]) + 12), lowered)
        return lowered.replace(" ", "")
    choice = re.sub(r"^(?:option|choice|quadrant) ", "", plain, flags=re.IGNORECASE).strip("() .")
    if re.fullmatch("[A-Z]|[IVX]{2,4}", choice):  # IV is a Roman numeral
        return choice
    outside = TEXT.sub(" ", text)
    if plain.startswith("-") or _NO_WORDS.search(plain) or any(character.isdigit() for character in plain):
        return None
    in_text = any(len(run) > 1 for content in TEXT.findall(text) for run in _RUN.findall(content))
    if not in_text and not any(_looks_like_a_word(run) for run in _RUN.findall(outside)):
        return None
    if (of := _OF_A_SERIES.fullmatch(lowered)) and of["verdict"] in _VERDICTS:
        return "|".join((_VERDICTS[of["verdict"]], of["before"] or of["behind"] or "", of["test"] or ""))
    return lowered


def _looks_like_a_word(run: str) -> bool:
    low = run.lower()
    if low in ("no", "on", "up"):
        return True
    if not re.search("[aeiouy]", low) or run not in (low, run.title(), run.upper()):  # mgh, mGh
        return False
    return len(low) >= 3 and low not in FUNCTIONS and list(low) != sorted(set(low))
