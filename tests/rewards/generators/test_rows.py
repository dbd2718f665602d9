"""The datasets made on the spot for mathematics and code, judged by the verifiers that they are made for."""

from typing import Any

import pytest

from evenkeel.rewards import GENERATORS, build_verifier
from evenkeel.rewards.references import check_references

MADE = [
    ("arithmetic", "math_answer", {"num_numbers": 4, "max_number": 9, "max_result": 40, "operations": "+-*"}),
    ("arithmetic", "math_answer", {}),
    ("small_programs", "code_tests", {"num_steps": 4, "max_number": 5, "num_inputs": 6}),
    ("small_programs", "code_tests", {}),
]
names = pytest.mark.parametrize(("name", "verifier", "options"), MADE)


@names
def test_the_parts_share_no_row_and_depend_on_the_seed_alone(name: str, verifier: str, options: dict[str, Any]) -> None:
    parts = {part: GENERATORS[name](part=part, train=40, test=20, seed=5, **options) for part in ("train", "test")}
    assert [len(rows) for rows in parts.values()] == [40, 20]
    questions = [row["prompt"] for rows in parts.values() for row in rows]
    assert len(set(questions)) == 60
    assert parts["test"] == GENERATORS[name](part="test", train=80, test=20, seed=5, **options)
    assert parts["train"] != GENERATORS[name](part="train", train=40, test=20, seed=6, **options)


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
