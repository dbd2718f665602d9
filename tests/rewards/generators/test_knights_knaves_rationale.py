"""Careful and hasty thoughts: what they conclude, and that what they say of the claims is so."""

import random

import pytest

from evenkeel.rewards.generators.knights_knaves import generate_puzzles, rationale, row
from evenkeel.rewards.generators.knights_knaves.search import search
from evenkeel.rewards.verifiers.knights_knaves import KnightsKnaves
from evenkeel.rewards.verifiers.knights_knaves.puzzle import evaluate, people_in


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
