"""Canonical form of puzzles: equal for puzzles that differ only by names and the order of the people.

A test puzzle that is a training puzzle with other names measures memory, not reasoning. The canonical form makes the
two equal, so that a set can be kept without duplicates and a split without leaks.
"""

import itertools
from collections.abc import Sequence

from evenkeel.rewards.verifiers.knights_knaves.puzzle import COMMUTATIVE, LEAVES, Statement, people_in


def canonical_statements(statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The same value for puzzles that differ only by the order of the people or of the arguments of and, or, iff.

    Claims that mean the same in different words ("is a knave", "is not a knight") stay different.

    The people are colored by how they occur. Of all orders in which the colors ascend the smallest result is taken;
    few people share a color.
    """
    people = range(len(statements))
    statements = tuple(_renumbered(statement, people) for statement in statements)
    colors = _refined(statements)
    alike = [[person for person in people if colors[person] == color] for color in sorted({*colors})]
    orders = itertools.product(*map(itertools.permutations, alike))
    return min(_in_order(statements, [*itertools.chain(*parts)]) for parts in orders)


def _in_order(statements: tuple[Statement, ...], order: Sequence[int]) -> tuple[Statement, ...]:
    """The statements when the people are listed in ``order``."""
    position = [order.index(person) for person in range(len(order))]
    return tuple(_renumbered(statements[person], position) for person in order)


def _renumbered(statement: Statement, number: Sequence[int]) -> Statement:
    if statement[0] in LEAVES:
        return (statement[0], number[statement[1]])
    arguments = [_renumbered(argument, number) for argument in statement[1:]]
    return (statement[0], *(sorted(arguments) if statement[0] in COMMUTATIVE else arguments))


def _refined(statements: tuple[Statement, ...]) -> list[int]:
    """Colors split until people of one color look alike: in their own claim and in the claims about them."""
    people, colors = range(len(statements)), [0] * len(statements)
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
