"""Canonical form of puzzles: equal for puzzles that differ only by names and the order of the people.

A test puzzle that is a training puzzle with other names measures memory, not reasoning. The canonical form makes the
two equal, so that a set can be kept without duplicates and a split without leaks.
"""

from collections.abc import Sequence

from evenkeel.rewards.verifiers.knights_knaves.puzzle import COMMUTATIVE, LEAVES, Statement, people_in


def canonical_statements(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The same value for puzzles that differ only by the order of the people or of the arguments of and, or, iff.

    Claims that mean the same in different words ("is a knave", "is not a knight") stay different.

    The people are colored by how they occur, and the colors refined until nothing changes; ties are broken by trying
    each person of a color first and keeping the smallest result (individualize and refine, McKay 1981). Of people whose
    exchange changes nothing only one is tried, so the cost stays small.
    """
    statements = tuple(_renumbered(statement, range(len(statements))) for statement in statements)
    return min(_leaves(statements, _refined(statements, [0] * len(statements))))


def _leaves(statements: tuple[Statement, ...], colors: list[int]) -> list[tuple[Statement, ...]]:
    shared = [color for color in colors if colors.count(color) > 1]
    if not shared:
        return [_in_order(statements, colors)]
    tied = [person for person, color in enumerate(colors) if color == min(shared)]
    found = []
    tried: list[int] = []
    for person in tied:
        if any(_exchanged(statements, person, other) == statements for other in tried):
            continue
        tried.append(person)
        singled_out = [2 * color + 1 for color in colors]
        singled_out[person] -= 1
        found += _leaves(statements, _refined(statements, singled_out))
    return found


def _in_order(statements: tuple[Statement, ...], position: Sequence[int]) -> tuple[Statement, ...]:
    """The statements when person p is listed at place ``position[p]``."""
    placed: list[Statement] = [()] * len(statements)
    for person, statement in enumerate(statements):
        placed[position[person]] = _renumbered(statement, position)
    return tuple(placed)


def _exchanged(statements: tuple[Statement, ...], one: int, other: int) -> tuple[Statement, ...]:
    position = list(range(len(statements)))
    position[one], position[other] = other, one
    return _in_order(statements, position)


def _renumbered(statement: Statement, number: Sequence[int]) -> Statement:
    if statement[0] in LEAVES:
        return (statement[0], number[statement[1]])
    arguments = [_renumbered(argument, number) for argument in statement[1:]]
    return (statement[0], *(sorted(arguments) if statement[0] in COMMUTATIVE else arguments))


def _refined(statements: tuple[Statement, ...], colors: list[int]) -> list[int]:
    """Colors split until people of one color look alike: in their own claim and in the claims about them."""
    people = range(len(statements))
    mentions = [[speaker for speaker in people if person in people_in(statements[speaker])] for person in people]
    while True:
        looks = [
            (
                colors[person],
                _seen_by(statements[person], person, colors),
                sorted(
                    (colors[speaker], _seen_by(statements[speaker], person, colors)) for speaker in mentions[person]
                ),
            )
            for person in people
        ]
        ranks = sorted(looks)
        refined = [ranks.index(look) for look in looks]
        if len(set(refined)) == len(set(colors)):
            return refined
        colors = refined


def _seen_by(statement: Statement, person: int, colors: Sequence[int]) -> Statement:
    return _renumbered(statement, [-1 if other == person else color for other, color in enumerate(colors)])
