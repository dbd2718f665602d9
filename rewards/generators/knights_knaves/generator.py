"""Knights-and-knaves puzzles from a seed: one solution each, no duplicates, train and test disjoint.

Claims are drawn as in the published sets: a plain role, not, and, or, if … then, if and only if, equally often. A
puzzle is kept when exactly one of all its assignments solves it and no kept puzzle has its canonical statements.
Unlike the published sets, no claim is always true or always false ("A is a knight if and only if A is a knave").
"""

import math
import random
from collections.abc import Hashable, Sequence

from evenkeel.rewards.generators.distinct import distinct
from evenkeel.rewards.generators.knights_knaves.canonical import canonical_statements
from evenkeel.rewards.verifiers.knights_knaves.language import NAMES, quiz
from evenkeel.rewards.verifiers.knights_knaves.puzzle import LEAVES, Puzzle, Statement, Style, solutions, truth_table

MOST_JOINED = 2
"""Claims that one *and* or *or* joins, as in the published sets; each of them is a role."""


def generate_puzzles(
    num_people: int,
    count: int,
    *,
    seed: int,
    names: Sequence[str] = NAMES,
    style: Style = "published",
    namings: int = 1,
) -> list[Puzzle]:
    """``count`` different puzzles of ``num_people`` people, the same for the same arguments on every machine.

    Args:
        num_people: 2 to 8.
        count: how many; the first k of n puzzles are the k puzzles of a smaller count.
        seed: any integer.
        names: the pool from which each puzzle draws its inhabitants.
        style: "published" prose or "compact" sentences for a tokenizer of whole words.
        namings: number of consecutive puzzles with the same statements, each with other inhabitants. For two people
            only about 200 puzzles differ by more than names and order.

    Raises:
        ValueError: an argument out of its range, or fewer puzzles exist than were asked for.
    """
    if len({*names}) < len(names):
        raise ValueError(f"names = {[*names]} holds one twice")
    if not 1 <= namings <= (most := math.perm(len(names), num_people)):
        raise ValueError(f"namings = {namings}: write 1 to {most}")
    rng = random.Random(f"knights and knaves, {num_people} people, seed {seed}")

    def draw() -> tuple[Hashable, tuple[tuple[Statement, ...], tuple[bool, ...]]] | None:
        statements = tuple(_random_statement(rng, num_people) for _ in range(num_people))
        found = solutions(statements)
        return (canonical_statements(statements), (statements, found[0])) if len(found) == 1 else None

    puzzles: list[Puzzle] = []
    try:
        for statements, solution in distinct(math.ceil(count / namings), draw):
            drawn: set[tuple[str, ...]] = set()
            while len(drawn) < namings:
                inhabitants = tuple(rng.sample(list(names), num_people))
                if inhabitants not in drawn:
                    drawn.add(inhabitants)
                    text = quiz(statements, inhabitants, style, rng)
                    puzzles.append(Puzzle(inhabitants, statements, solution, text))
    except ValueError:
        what = f"only {len(puzzles)} of {count} puzzles of {num_people} people were found."
        raise ValueError(f"{what} Ask for fewer, or raise namings.") from None
    return puzzles[:count]


def _random_statement(rng: random.Random, num_people: int) -> Statement:
    """A claim that is neither always true nor always false, with no connective that joins a claim to itself."""
    always = (1 << (1 << num_people)) - 1
    while True:
        statement = _random_claim(rng, num_people)
        if truth_table(statement, num_people) not in (0, always):
            return statement


def _random_claim(rng: random.Random, num_people: int) -> Statement:
    word = rng.choice(("role", "not", "and", "or", "->", "<=>"))
    if word == "role":
        return _random_role(rng, num_people)
    count = 1 if word == "not" else rng.randint(2, MOST_JOINED) if word in ("and", "or") else 2
    arguments: list[Statement] = []
    while len(arguments) < count:
        argument = _random_role(rng, num_people)
        if argument not in arguments:
            arguments.append(argument)
    return (word, *arguments)


def _random_role(rng: random.Random, num_people: int) -> Statement:
    return (rng.choice(LEAVES), rng.randrange(num_people))
