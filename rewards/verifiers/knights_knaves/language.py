"""English for puzzles, in two phrasings.

*published* varies how people speak, as the published quizzes do. *compact* has one fixed phrasing with spaces around
every mark, so that splitting at blanks leaves a few dozen words: a model with a million weights can learn it.
"""

import random
from collections.abc import Sequence
from typing import Literal

from evenkeel.rewards.verifiers.knights_knaves.puzzle import LEAVES, Statement, Style

NAMES = tuple(
    """Ada Adam Agnes Albert Alice Anna Arthur Boris Carla Cecil Clara Colin Daisy Dora Edgar Elena Felix Flora Frank
    George Greta Hannah Hugo Ida Irene Ivan Jonas Julia Karl Laura Leo Lydia Marcus Maria Nina Nora Oscar Paula
    Peter Quentin Rosa Ruth Simon Stella Tara Thomas Ursula Victor Wanda Yvonne""".split()  # noqa: SIM905 — as a list it would be fifty lines
)

_INTRODUCTION = (
    "A very special island is inhabited only by knights and knaves. "
    "Knights always tell the truth, and knaves always lie. "
)
_QUESTION = "So who is a knight and who is a knave?"
_COMPACT_QUESTION = "who is a knight and who is a knave ?"

_QUOTED = (
    '{name} said, "{claim}."',
    '{name} stated, "{claim}."',
    '{name} noted, "{claim}."',
    '{name} remarked, "{claim}."',
    '{name} commented, "{claim}."',
    '{name} asserted: "{claim}."',
    '{name} was heard saying, "{claim}."',
    'In a statement by {name}: "{claim}."',
    'In {name}\'s words: "{claim}."',
    'According to {name}, "{claim}."',
    'As {name} put it, "{claim}."',
    '"{claim}," {name} declared.',
    '"{claim}," {name} claimed.',
    '"{claim}," {name} mentioned.',
)
_REPORTED = ("{name} said that {claim}.", "{name} told you that {claim}.", "{name} expressed that {claim}.")


def role(is_knight: bool) -> Literal["knight", "knave"]:
    """The word for an inhabitant's role."""
    return "knight" if is_knight else "knave"


def claim(statement: Statement, names: Sequence[str]) -> str:
    """``statement`` as an English clause; a compound clause inside another is in spaced parentheses."""
    word, *arguments = statement
    if word in LEAVES:
        return f"{names[arguments[0]]} is a {role(word == 'telling-truth')}"
    if word == "not":
        inner = arguments[0]
        if inner[0] in LEAVES:
            return f"{names[inner[1]]} is not a {role(inner[0] == 'telling-truth')}"
        return f"it is not true that {_enclosed(inner, names)}"
    clauses = [_enclosed(argument, names) for argument in arguments]
    if word == "->":
        return f"if {clauses[0]} then {clauses[1]}"
    return {"and": " and ", "or": " or ", "<=>": " if and only if "}[word].join(clauses)


def _enclosed(statement: Statement, names: Sequence[str]) -> str:
    is_plain = statement[0] in LEAVES or (statement[0] == "not" and statement[1][0] in LEAVES)
    return claim(statement, names) if is_plain else f"( {claim(statement, names)} )"


def quiz(statements: Sequence[Statement], names: Sequence[str], style: Style, rng: random.Random) -> str:
    """The question to the policy. ``rng`` chooses among the published phrasings; *compact* has only one."""
    if style == "compact":
        spoken = [f"{name} says : {claim(s, names)} ." for name, s in zip(names, statements, strict=True)]
        return " ".join([*spoken, _COMPACT_QUESTION])
    meeting = f"You meet {len(names)} inhabitants: {listed(names)}. "
    spoken = [_spoken(name, claim(s, names), rng) for name, s in zip(names, statements, strict=True)]
    return _INTRODUCTION + meeting + " ".join([*spoken, _QUESTION])


def _spoken(name: str, clause: str, rng: random.Random) -> str:
    clause = clause.replace("( ", "(").replace(" )", ")")
    frame = rng.choice(_QUOTED + _REPORTED)
    return frame.format(name=name, claim=clause if frame in _REPORTED else clause[0].upper() + clause[1:])


def listed(items: Sequence[str]) -> str:
    """The items as English lists them: "a", "a and b", "a, b, and c"."""
    if len(items) <= 2:
        return " and ".join(items)
    return ", ".join(items[:-1]) + f", and {items[-1]}"


def roles(names: Sequence[str], assignment: Sequence[bool], style: Style) -> str:
    """ "A is a knight, B is a knave, and C is a knight"; *compact*: with spaced commas alone."""
    parts = [f"{name} is a {role(is_knight)}" for name, is_knight in zip(names, assignment, strict=False)]
    return " , ".join(parts) if style == "compact" else listed(parts)


def numbered_roles(names: Sequence[str], assignment: Sequence[bool]) -> str:
    """The published ``solution_text_format``: one "(1) A is a knight" per line."""
    return "\n".join(
        f"({number}) {name} is a {role(is_knight)}"
        for number, (name, is_knight) in enumerate(zip(names, assignment, strict=True), start=1)
    )
