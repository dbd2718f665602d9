"""Brief answers to Knights & Knaves, for policies that a laptop trains within a minute.

A thought is a trial or two: roles for all people, then claim by claim whom it mentions, whether what it says of them is
true, and whether it agrees with its speaker's role. ``Ada knight Boris knave Ada Boris true yes Boris Ada false yes``
says that Ada claims something true of Boris, as a knight does, and Boris something false of Ada. The first claim that
disagrees turns its speaker's role, in a second trial. Completions differ in length by the claims and by the trials.
"""

import random
from itertools import product

from rewards.verifiers.knights_knaves import Puzzle
from rewards.verifiers.knights_knaves.language import role
from rewards.verifiers.knights_knaves.puzzle import LEAVES, Statement, evaluate

_MOST_TRIALS = 2
Roles = tuple[bool, ...]


def trials(puzzle: Puzzle, rng: random.Random, *, careful: bool) -> str:
    """One trial or two, and the roles of the last one as the answer, in the form which the strict layout reads.

    A careful one starts at random where turning leads to the solution, and checks all its claims. A hasty one starts
    anywhere, checks one claim, turns its speaker's role if it disagrees, does not look again, and is right by luck.
    """
    starts = list(product((True, False), repeat=len(puzzle.names)))
    if careful:
        tried = rng.choice([way for start in starts if (way := _way(puzzle, start))])
        thoughts = [_trial(puzzle, roles, checks=len(roles)) for roles in tried]
    else:
        start = rng.choice(starts)
        tried = [start] if _agrees(puzzle, start, 0) else [start, _turned(start, 0)]
        thoughts = [_trial(puzzle, roles, checks=checks) for roles, checks in zip(tried, (1, 0), strict=False)]
    answer = " ".join(f"{name} : {role(is_knight)}" for name, is_knight in zip(puzzle.names, tried[-1], strict=True))
    return f"<think> {' '.join(thoughts)} </think> <answer> {answer} </answer>"


def _way(puzzle: Puzzle, start: Roles) -> list[Roles]:
    """The trials from ``start`` to the solution; empty where turning does not get there in so many."""
    way = [start]
    while way[-1] != puzzle.solution and len(way) < _MOST_TRIALS:
        way.append(_turned(way[-1], _checked(puzzle, way[-1])[-1]))
    return way if way[-1] == puzzle.solution else []


def _trial(puzzle: Puzzle, roles: Roles, *, checks: int) -> str:
    """``roles`` and at most so many ``checks``."""
    words = [word for name, is_knight in zip(puzzle.names, roles, strict=True) for word in (name, role(is_knight))]
    for speaker in _checked(puzzle, roles)[:checks]:
        words.append(puzzle.names[speaker])
        for mentioned, said in _parts(puzzle.statements[speaker]):
            words += [puzzle.names[mentioned], "true" if evaluate(said, roles) else "false"]
        words.append("yes" if _agrees(puzzle, roles, speaker) else "no")
    return " ".join(words)


def _checked(puzzle: Puzzle, roles: Roles) -> range:
    """The speakers up to the first whose claim disagrees."""
    speakers = range(len(roles))
    return range(1 + next((each for each in speakers if not _agrees(puzzle, roles, each)), speakers[-1]))


def _agrees(puzzle: Puzzle, roles: Roles, speaker: int) -> bool:
    return evaluate(puzzle.statements[speaker], roles) == roles[speaker]


def _turned(roles: Roles, person: int) -> Roles:
    return tuple(is_knight != (each == person) for each, is_knight in enumerate(roles))


def _parts(statement: Statement) -> list[tuple[int, Statement]]:
    """What ``statement`` says of one person each, and of whom, in the order it is said in."""
    word, *arguments = statement
    if word in LEAVES:
        return [(arguments[0], statement)]
    if word == "not":
        return [(person, ("not", said)) for person, said in _parts(arguments[0])]
    return [part for argument in arguments for part in _parts(argument)]
