"""Generated puzzles: one solution, no duplicates, train and test apart, and a text that says what is meant."""

import ast
import itertools
import re
from collections import Counter

import pytest

from evenkeel.rewards.generators.knights_knaves.canonical import canonical_statements
from evenkeel.rewards.generators.knights_knaves.generator import generate_puzzles
from evenkeel.rewards.generators.rows import knights_knaves
from tests.rewards.verifiers.test_knights_knaves_puzzle import brute_force


@pytest.mark.parametrize("num_people", range(2, 9))
def test_each_puzzle_has_its_one_solution_and_occurs_once(num_people):
    puzzles = generate_puzzles(num_people, 40, seed=num_people)
    assert len(puzzles) == 40  # 7 sizes × 40 = 280 puzzles in all
    assert all(brute_force(puzzle.statements) == {puzzle.solution} for puzzle in puzzles)
    assert all(len(set(puzzle.names)) == num_people for puzzle in puzzles)
    assert len({puzzle.quiz for puzzle in puzzles}) == 40
    assert len({canonical_statements(puzzle.statements) for puzzle in puzzles}) == 40


NAMES = ["Ava", "Ben", "Cleo"]


def parts(num_people, **options):
    """How often each puzzle, whatever its names and order, is in the rows to train on and in the others."""
    for part in ("train", "test"):
        rows = knights_knaves(part=part, num_people=num_people, seed=1, names=NAMES, **options)
        statements = [ast.literal_eval(row["reference"]["statements"]) for row in rows]
        yield Counter(map(canonical_statements, statements))


def test_train_and_test_share_no_puzzle_under_other_names():
    train, test = parts([2, 3], train=120, test=40, style="compact")
    assert (len(train), len(test)) == (240, 80)
    assert {*train.values(), *test.values()} == {1}
    assert not train.keys() & test.keys()


def test_namings_give_every_puzzle_to_so_many_inhabitants_on_one_side_only():
    train, test = parts(2, train=40, test=20, namings=4)
    assert set(train.values()) == set(test.values()) == {4}
    assert not train.keys() & test.keys()
    puzzles = generate_puzzles(2, 60, seed=1, names=NAMES, namings=4)
    assert len({(puzzle.names, puzzle.statements) for puzzle in puzzles}) == 60
    with pytest.raises(ValueError, match="test = 18 is not a multiple"):
        [*parts(2, train=40, test=18, namings=4)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": ("Ava", "Ben", "Cleo"), "namings": 7}, "namings = 7: write 1 to 6"),
        ({"names": ("Ava", "Ben")}, "namings = 1"),
        ({"names": ("Ava", "Ava", "Ben", "Cleo")}, "holds one twice"),
        ({"num_people": 2, "count": 5005, "namings": 10}, r"only \d+0 of 5005 puzzles of 2 people"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message, monkeypatch):
    monkeypatch.setattr("evenkeel.rewards.generators.distinct.FRUITLESS", 5)  # of 10,000 draws
    with pytest.raises(ValueError, match=message):
        generate_puzzles(**{"num_people": 3, "count": 5, "seed": 0, **arguments})


def spoken_claims(quiz, names):
    """The claims found in the English text, as Python expressions over ``k``: one a person, in order."""
    somebody = "|".join(names)
    role = rf"(?:{somebody}) is (?:not )?a (?:knight|knave)"
    found = re.findall(rf"(?:[Ii]f )?{role}(?: (?:and|or|then|if and only if) {role})?", quiz)
    return [_as_python(text) for text in found]


def _as_python(text):
    text = re.sub(r"(\w+) is (not )?a (knight|knave)", _role_as_python, text)
    if conditional := re.fullmatch(r"[Ii]f (.*) then (.*)", text):
        return f"(not {conditional[1]} or {conditional[2]})"
    return text.replace("if and only if", "==")


def _role_as_python(match):
    return f"(k[{match[1]!r}] is {(match[3] == 'knight') != bool(match[2])})"


@pytest.mark.parametrize("style", ["published", "compact"])
@pytest.mark.parametrize("num_people", [2, 3, 5])
def test_the_english_text_alone_has_the_same_one_solution(style, num_people):
    for puzzle in generate_puzzles(num_people, 60, seed=2, style=style):
        claims = spoken_claims(puzzle.quiz, puzzle.names)
        assert len(claims) == num_people, puzzle.quiz
        solved = [
            roles
            for roles in itertools.product((True, False), repeat=num_people)
            if all(
                bool(eval(claim, {"k": dict(zip(puzzle.names, roles, strict=True))})) is role
                for claim, role in zip(claims, roles, strict=True)
            )
        ]
        assert solved == [puzzle.solution], puzzle.quiz
