"""Reading of the roles in an answer.

The whole text must consist of clauses that name each person once, and nothing else::

    clause     = [number] NAME ("is" | ":" | "=" | "→" | " - ") ["a" | "an" | "the"] ("knight" | "knave")
               | [number] NAME {"," NAME} "and" NAME "are" ["both" | "all"] ("knights" | "knaves")
    number     = "(1)" | "1." | "1)" | "-" | "•"        in any order, never read
    between    = line breaks, blanks, "," ";" "." "and", braces

Case, markdown emphasis and double quotes do not matter. Any other text ("none of these hold", "if", "or", "not", a
second answer) makes the answer unreadable: a clause inside a longer sentence can mean its opposite.
"""

import re
from collections.abc import Sequence

MAX_CHARACTERS = 10_000

_EMPHASIS = re.compile(r"[*`\"]|__")
_BETWEEN = re.compile(r"[\s.,;{}]*(?:and\b)?[\s,]*")
_NUMBER = r"(?:(?:\(\d{1,3}\)|\d{1,3}[.)]|[-•])\s*)?"
_ROLE = r"(?:\s+is\b|\s*(?::|=|→|->)|\s+[-–—]\s)\s*(?:(?:an?|the)\s+)?(?P<role>knight|knave)\b"
_ROLES = r"\s+are\s+(?:(?:both|all)\s+)?(?P<roles>knight|knave)s\b"
_AND = r"\s*,\s*(?:and\s+)?|\s+and\s+"
_NUMBERED_LINE = re.compile(rf"{_NUMBER}(?P<name>\S.*?)\s+is\s+an?\s+(?:knight|knave)\.?", re.IGNORECASE)


def parse_roles(text: str, names: Sequence[str]) -> tuple[bool, ...] | str:
    """The assignment that ``text`` states, in the order of ``names``, or a message why it is unreadable.

    Every name must occur once. ``names`` must differ when case is ignored.
    """
    if len(text) > MAX_CHARACTERS:
        return f"an answer of {len(text)} characters is not read (at most {MAX_CHARACTERS})"
    # Lower case first: ignoring case in the pattern would let "knİght" match as "knight" and "ſimon" as "simon".
    text = _EMPHASIS.sub("", text).lower()
    alternatives = "|".join(re.escape(name.lower()) for name in names)
    several = rf"(?:{alternatives})(?:(?:{_AND})(?:{alternatives}))+"
    clause = re.compile(rf"{_NUMBER}(?:(?P<name>{alternatives}){_ROLE}|(?P<names>{several}){_ROLES})")
    stated: dict[str, bool] = {}
    position = _skip(text, 0)
    while position < len(text):
        match = clause.match(text, position)
        if match is None:
            return f"{text[position : position + 60]!r} is not of the form 'NAME is a knight' or 'NAME is a knave'"
        for name in re.split(_AND, match["names"]) if match["names"] else [match["name"]]:
            if name in stated:
                return f"{name!r} is given a role twice"
            stated[name] = "knight" in (match["role"], match["roles"])
        position = _skip(text, match.end())
    missing = [name for name in names if name.lower() not in stated]
    if missing:
        return f"no role is given to {', '.join(missing)}"
    return tuple(stated[name.lower()] for name in names)


def names_in(text: str) -> list[str]:
    """The names in an answer with one "(1) NAME is a ROLE" per line; empty if any line has another form."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    matches = [_NUMBERED_LINE.fullmatch(line) for line in lines]
    return [match["name"] for match in matches if match] if all(matches) else []


def _skip(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position
