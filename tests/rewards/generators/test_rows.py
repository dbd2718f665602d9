"""The datasets made on the spot: scored by the verifiers, or begun by the environments, that they are made for."""

from typing import Any

import pytest

from evenkeel.rewards import GENERATORS, build_verifier
from evenkeel.rewards.environments import build_environment, trial_problem
from evenkeel.rewards.environments.shipped import ENVIRONMENTS
from tests.rewards.references import check_references

MADE = [
    ("arithmetic", "math_answer", {"num_numbers": 4, "max_number": 9, "max_result": 40, "operations": "+-*"}),
    ("arithmetic", "math_answer", {}),
    ("small_programs", "code_tests", {"num_steps": 4, "max_number": 5, "num_inputs": 6}),
    ("small_programs", "code_tests", {}),
    ("countdown", "countdown", {"max_number": 12, "max_target": 40}),
    ("knights_knaves", "knights_knaves", {"num_people": 3}),
]
names = pytest.mark.parametrize(("name", "verifier", "options"), MADE)

ROUNDS = [("guessing", {"largest": 15, "guesses": 4}), ("key_door", {"length": 3, "moves": 9}), ("key_door", {})]


@names
def test_the_parts_share_no_row_and_depend_on_the_seed_alone(name: str, verifier: str, options: dict[str, Any]) -> None:
    parts = {part: GENERATORS[name](part=part, train=40, test=20, seed=5, **options) for part in ("train", "test")}
    assert [len(rows) for rows in parts.values()] == [40, 20]
    questions = [row["prompt"] for rows in parts.values() for row in rows]
    assert len(set(questions)) == 60
    assert parts["test"] == GENERATORS[name](part="test", train=80, test=20, seed=5, **options)
    assert parts["train"] != GENERATORS[name](part="train", train=40, test=20, seed=6, **options)


@pytest.mark.parametrize(("name", "options"), ROUNDS)
def test_rounds_share_no_row_and_an_environment_of_the_same_options_begins_with_each(
    name: str, options: dict[str, Any]
) -> None:
    parts = {part: GENERATORS[name](part=part, train=60, test=20, seed=5, **options) for part in ("train", "test")}
    rows = [row for several in parts.values() for row in several]
    assert len({row["prompt"] for row in rows}) == 80
    assert parts["test"] == GENERATORS[name](part="test", train=90, test=20, seed=5, **options)
    for row in rows:
        ENVIRONMENTS[name](**options).reset(**row)
    first, *_ = options.values() or [4]
    assert {int(row["reference"]) for row in rows} == set(range(1, first + 1))


def test_a_round_that_the_environment_is_too_small_for_is_refused() -> None:
    rows = GENERATORS["guessing"](part="train", train=20, test=1, seed=5, largest=15)
    problem = trial_problem(build_environment({"name": "guessing", "largest": 7}), {"data.train": rows})
    assert "is not within 1 to largest = 7" in problem


@names
def test_the_verifier_accepts_the_rows_own_answers_and_no_neighbours(
    name: str, verifier: str, options: dict[str, Any]
) -> None:
    judge = build_verifier(verifier)
    references = [row["reference"] for row in GENERATORS[name](part="train", train=24, test=1, seed=5, **options)]
    check_references(judge, references, name)
    golds = [judge.gold_completion(reference) for reference in references]
    assert all(isinstance(gold, str) for gold in golds)
    others = [reference for reference in references if reference != references[0]]
    verdicts = judge.judge_all([str(golds[0])] * len(others), others)
    assert {verdict.score for verdict in verdicts} == {0.0}
