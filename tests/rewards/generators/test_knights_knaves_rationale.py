"""Careful and hasty thoughts: what they conclude, and that what they say of the claims is so."""

import random

import pytest

from evenkeel.rewards.generators.knights_knaves import generate_puzzles, rationale, row
from evenkeel.rewards.generators.knights_knaves.search import search
from evenkeel.rewards.verifiers.knights_knaves import KnightsKnaves
from evenkeel.rewards.verifiers.knights_knaves.language import quiz
from evenkeel.rewards.verifiers.knights_knaves.puzzle import Puzzle, evaluate, people_in

STATEMENTS = (("lying", 1), ("and", ("telling-truth", 0), ("telling-truth", 1)))

BOTH, AVA = "Ava is a knight , Ben is a knight", "Ava is a knight , Ben is a knave"
BEN, NOBODY = "Ava is a knave , Ben is a knight", "Ava is a knave , Ben is a knave"


def two(style):
    """Ava: Ben is a knave. Ben: Ava is a knight and Ben is a knight. Only (knight, knave) fits."""
    names = ("Ava", "Ben")
    return Puzzle(names, STATEMENTS, (True, False), quiz(STATEMENTS, names, style, random.Random(0)), style)


def test_search_of_a_small_puzzle():
    trials = search(STATEMENTS)

    assert [trial.assumed for trial in trials] == [(True, True), (True, False)]
    assert [trial.checks for trial in trials] == [((0, False),), ((0, True), (1, False))]
    assert [trial.is_consistent for trial in trials] == [False, True]


@pytest.mark.parametrize("num_people", [2, 3, 5, 7])
def test_search_ends_at_the_solution_and_reports_true_checks(num_people):
    for puzzle in generate_puzzles(num_people, 40, seed=0):
        trials = search(puzzle.statements)
        assert trials[-1].assumed == puzzle.solution
        for trial in trials:
            for speaker, is_true in trial.checks:
                assert max(people_in(puzzle.statements[speaker]) | {speaker}) < len(trial.assumed)
                assert evaluate(puzzle.statements[speaker], trial.assumed) == is_true
            agreements = [is_true == trial.assumed[speaker] for speaker, is_true in trial.checks]
            assert all(agreements) == trial.is_consistent
            assert all(agreements[:-1])
        checked = {speaker for trial in trials if trial.is_consistent for speaker, _ in trial.checks}
        assert checked == set(range(num_people))


def test_careful_compact_text():
    assert rationale(two("compact"), random.Random(0), careful=True).completion == (
        "<think> suppose Ava is a knight , Ben is a knight . Ava tells a lie . contradiction . "
        "suppose Ava is a knight , Ben is a knave . Ava tells the truth . Ben tells a lie . consistent . </think> "
        "<answer> Ava is a knight , Ben is a knave . </answer>"
    )


def test_careful_published_text():
    assert rationale(two("published"), random.Random(0), careful=True).completion.splitlines() == [
        "<think>",
        "Suppose roles person by person, and check each claim as soon as it is decided.",
        "Suppose Ava is a knight and Ben is a knight. The claim of Ava, that Ben is a knave, is false, "
        "but a knight's must be true. That is a contradiction.",
        "Suppose Ava is a knight and Ben is a knave. The claim of Ava, that Ben is a knave, is true, "
        "as a knight's must be true. The claim of Ben, that Ava is a knight and Ben is a knight, is false, "
        "as a knave's must be false. No contradiction so far.",
        "Every claim agrees with its speaker, so this is the solution.",
        "</think>",
        "<answer>",
        "(1) Ava is a knight",
        "(2) Ben is a knave",
        "</answer>",
    ]


def test_hasty_thoughts_check_one_claim_and_turn_its_speaker_where_it_fails():
    written = {
        tuple(hasty.thought.removesuffix(" good enough .").split(" . ")): hasty.answer
        for hasty in (rationale(two("compact"), random.Random(seed), careful=False) for seed in range(100))
    }

    assert written == {
        (f"maybe {guess}", *rest): f"{answer} ."
        for guess, *rest, answer in (
            (BOTH, "Ava tells a lie", "so Ava is a knave .", BEN),
            (BOTH, "Ben tells the truth .", BOTH),
            (AVA, "Ava tells the truth .", AVA),
            (AVA, "Ben tells a lie .", AVA),
            (BEN, "Ava tells a lie .", BEN),
            (BEN, "Ben tells a lie", "so Ben is a knave .", NOBODY),
            (NOBODY, "Ava tells the truth", "so Ava is a knight .", AVA),
            (NOBODY, "Ben tells a lie .", NOBODY),
        )
    }


@pytest.mark.parametrize("style", ["published", "compact"])
@pytest.mark.parametrize("scheme", ["accuracy", "paper"])
def test_the_verifier_agrees_with_every_rationale(style, scheme):
    verifier = KnightsKnaves(scheme=scheme)
    rng = random.Random(0)
    hasty_right = 0
    for puzzle in generate_puzzles(3, 100, seed=0, style=style):
        reference = row(puzzle, 0)
        careful = rationale(puzzle, rng, careful=True)
        assert careful.is_right
        assert verifier(careful.completion, reference).score == verifier.full_score
        hasty = rationale(puzzle, rng, careful=False)
        assert (verifier(hasty.completion, reference).score == verifier.full_score) == hasty.is_right
        hasty_right += hasty.is_right
    assert 10 <= hasty_right <= 40  # a blind guess of three roles is right once in eight


def test_compact_words_are_few():
    rng = random.Random(0)
    puzzles = generate_puzzles(3, 100, seed=0, names=("Ava", "Ben", "Cleo"), style="compact")
    words = {
        word
        for puzzle in puzzles
        for careful in (True, False)
        for word in rationale(puzzle, rng, careful=careful).completion.split()
    }
    assert words == {
        *("Ava", "Ben", "Cleo", "<think>", "</think>", "<answer>", "</answer>", ",", "."),
        *("suppose", "maybe", "is", "a", "knight", "knave", "tells", "the", "truth", "lie"),
        *("possible", "contradiction", "consistent", "so", "good", "enough"),
    }
