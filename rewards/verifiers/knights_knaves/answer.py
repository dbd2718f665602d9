"""Reads who is a knight and who is a knave from an answer, or refuses it.

The whole text must consist of one clause a person, and nothing else::

    clause     = [number] NAME ("is" | ":") ["a" | "an" | "the"] ("knight" | "knave")
    number     = "(1)" | "1." | "1)" | "-" | "•"        in any order, never read
    between    = line breaks, blanks, "," ";" "." "and"

Case and markdown emphasis do not matter. Anything left over ("none of these hold", "if", "or", "not", a second opinion)
makes the text no answer: a clause inside a longer sentence can mean its opposite.

``layout: free`` also reads looser forms in which models state roles::

    group        = NAMES "are" ["both" | "all"] ["the"] ("knights" | "knaves")
    heading      = ["the"] ("knights" | "knaves") (":" | "are") NAMES          also one name a line; "none" is nobody
    introduction = words that can deny nothing ("Here is the final answer") ":"
    connective   = "therefore" | "so" | "we conclude that" | …                 before a clause

A role may be given twice if it is the same. What is left over makes the text no answer here too: "if", "not", "or",
"none of these hold", a name that nobody has.
"""

import re
from collections.abc import Sequence

MAX_CHARACTERS = 10_000

_EMPHASIS = re.compile(r"[*`]|__")
_BETWEEN = re.compile(r"[\s.,;]*(?:and\b)?[\s,]*")
_NUMBER = r"(?:(?:\(\d{1,3}\)|\d{1,3}[.)]|[-•])\s*)?"
_ROLE = r"(?:\s+is\b|\s*:)\s*(?:(?:an?|the)\s+)?(?P<role>knight|knave)\b"
_NUMBERED_LINE = re.compile(rf"{_NUMBER}(?P<name>\S.*?)\s+is\s+an?\s+(?:knight|knave)\.?", re.IGNORECASE)


def parse_roles(text: str, names: Sequence[str]) -> tuple[bool, ...] | str:
    """The assignment that ``text`` states, in the order of ``names``, or a sentence on why it states none.

    Every name occurs once. ``names`` are different when case is ignored.
    """
    if len(text) > MAX_CHARACTERS:
        return f"an answer of {len(text)} characters is not read (at most {MAX_CHARACTERS})"
    # Lower case first: ignoring case in the pattern would let "knİght" match as "knight" and "ſimon" as "simon".
    text = _EMPHASIS.sub("", text).lower()
    clause = _clause(names)
    stated: dict[str, bool] = {}
    position = _skip(text, 0)
    while position < len(text):
        match = clause.match(text, position)
        if match is None:
            return f"{text[position : position + 60]!r} is not of the form 'NAME is a knight' or 'NAME is a knave'"
        if match["name"] in stated:
            return f"{match['name']!r} is given a role twice"
        stated[match["name"]] = match["role"] == "knight"
        position = _skip(text, match.end())
    missing = [name for name in names if name.lower() not in stated]
    if missing:
        return f"no role is given to {', '.join(missing)}"
    return tuple(stated[name.lower()] for name in names)


def names_in(text: str) -> list[str]:
    """The names in an answer of one "(1) NAME is a ROLE" a line; empty where some line is not of this form."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    matches = [_NUMBERED_LINE.fullmatch(line) for line in lines]
    return [match["name"] for match in matches if match] if all(matches) else []


def _clause(names: Sequence[str]) -> re.Pattern[str]:
    # The longest name first, so that Zoe Ann is not read as Zoe; what follows a name settles it in any case.
    alternatives = "|".join(re.escape(name.lower()) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"{_NUMBER}(?P<name>{alternatives}){_ROLE}")


def _skip(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position


_LOOSE_EMPHASIS = re.compile(r"[*`#]|__")
_BLANKS = re.compile(r"[^\S\n]+")
_LINE_ENDS = re.compile(r" ?\n[\n ]*")
_LOOSE_BETWEEN = re.compile(r"(?:[\s.,;]|and\b|&)*")
_CONNECTIVE = re.compile(
    r"(?:therefore|thus|so|hence|consequently|finally|in conclusion|in summary|as a result|this means|it follows|"
    r"(?:so )?we (?:conclude|find|deduce)|the (?:final )?answer is)(?: that)?\b[,:]? ?"
)
_INTRODUCTION = re.compile(r"([a-z]+(?:[ ,]+[a-z]+){0,19}) ?:")
_HARMLESS = frozenset(
    """
    the this that these here is are as follows following final answer answers solution solutions conclusion result
    results role roles identity identities assignment of for each every person people inhabitant inhabitants islander
    islanders puzzle therefore thus so hence finally in summary we have get find found conclude deduce determine can
    now my our correct complete unique only consistent based on from by above analysis reasoning statements logic and
    it gives us
    """.split()  # noqa: SIM905 — a list of words is read as words
)
_LISTED = r"(?:(?:\(\d{1,3}\)|\d{1,3}[.)]|[-•]) ?)?"
_END = r"(?=\s?(?:[\n.;]|$|,? ?(?:and )?(?:the )?kna(?:ve|ves)\b|,? ?(?:and )?(?:the )?knights?\b))"


def parse_free(text: str, names: Sequence[str]) -> tuple[bool, ...] | str:
    """The assignment that ``text`` states, in the order of ``names``, or a sentence on why it states none."""
    if len(text) > MAX_CHARACTERS:
        return f"an answer of {len(text)} characters is not read (at most {MAX_CHARACTERS})"
    text = _LINE_ENDS.sub("\n", _BLANKS.sub(" ", _LOOSE_EMPHASIS.sub("", text).lower()))
    forms = _forms(names)
    stated: dict[str, bool] = {}
    position = _skipped(text, 0)
    while position < len(text):
        match = next((match for form in forms if (match := form.match(text, position))), None)
        if match is not None:
            for name in _listed(match["names"], names):
                if stated.setdefault(name, match["role"].startswith("knight")) != match["role"].startswith("knight"):
                    return f"{name!r} is given both roles"
            position = _skipped(text, match.end())
        elif (end := _introduced(text, position)) > position:
            position = _skipped(text, end)
        else:
            return f"{text[position : position + 60]!r} says of nobody alone, or of no list of names, what they are"
    missing = [name for name in names if name.lower() not in stated]
    return f"no role is given to {', '.join(missing)}" if missing else tuple(stated[name.lower()] for name in names)


def _forms(names: Sequence[str]) -> list[re.Pattern[str]]:
    name = "|".join(re.escape(name.lower()) for name in sorted(names, key=len, reverse=True))
    name = rf"(?:{name})(?![\w-])"
    joined = rf"{name}(?:(?: ?, ?and | and | ?[,&] ?){name})*"
    lines = rf"(?:\n{_LISTED}{name}(?= ?(?:\n|$)))+"
    return [
        re.compile(rf"{_LISTED}(?P<names>{name})(?: is\b| ?[:=-]) ?(?:(?:an?|the) )?(?P<role>knight|knave)\b"),
        re.compile(
            rf"{_LISTED}(?P<names>{joined})(?: are\b| ?[:=-]) ?(?:(?:both|all) )?(?:the )?(?P<role>knight|knave)s\b"
        ),
        re.compile(
            rf"{_LISTED}(?:the )?(?P<role>knight|knave)s?(?: is\b| are\b| ?:) ?"
            rf"(?P<names>{joined}{_END}|{lines}|(?:none|nobody|no one)\b{_END})"
        ),
    ]


def _listed(text: str, names: Sequence[str]) -> list[str]:
    found = "|".join(re.escape(name.lower()) for name in sorted(names, key=len, reverse=True))
    return re.findall(rf"(?<![\w-])(?:{found})(?![\w-])", text)


def _introduced(text: str, position: int) -> int:
    """Where an introduction or a connective ends that begins at ``position``; ``position`` where there is none."""
    introduction = _INTRODUCTION.match(text, position)
    if introduction and _HARMLESS.issuperset(introduction[1].replace(",", " ").split()):
        return introduction.end()
    connective = _CONNECTIVE.match(text, position)
    return connective.end() if connective else position


def _skipped(text: str, position: int) -> int:
    match = _LOOSE_BETWEEN.match(text, position)
    return match.end() if match else position
