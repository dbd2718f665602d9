import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from evenkeel.rewards.verifiers.countdown import Countdown
from tests.paths import SHARED_DATA
from tests.rewards.bounded import score_in_bounded_time

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))
REFERENCE = {"numbers": [79, 17, 60], "target": 36}
RIGHT = "<think> 79 + 17 is 96 </think> <answer> 79 + 17 - 60 </answer>"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['answer'][:24]!r} for {case['target']}")
def test_cases(case: dict[str, Any]) -> None:
    verifier = Countdown(use_all=case.get("use_all", False))
    verdict = verifier(f"<think> thoughts </think> <answer>{case['answer']}</answer>", case)
    assert verdict.score == case["score"], verdict.reason
    assert verdict.answer == case["answer"].strip()


@pytest.mark.parametrize(
    "reference",
    [
        None,
        {"numbers": [79, 17, 60]},
        {"numbers": [], "target": 36},
        {"numbers": [7.5], "target": 7},
        {"numbers": [True], "target": 1},
        {"numbers": [-7], "target": 7},
        {"numbers": [7], "target": "7"},
        {"numbers": np.array([[7]]), "target": 7},
    ],
    ids=str,
)
def test_an_unusable_reference_is_unscored(reference: Any) -> None:
    verdict = Countdown()(RIGHT, reference)
    assert verdict.score is None
    assert verdict.reason
    assert Countdown().gold_completion(reference) is None


@pytest.mark.parametrize(
    "answer",
    ["(" * 10_000 + "1" + ")" * 10_000, "1+" * 100_000 + "1", "1+" * 1_500 + "1", "9" * 1_000_000, "=" * 1_000_000],
    ids=lambda answer: answer[:6],
)
def test_bounded_in_time(answer: str) -> None:
    assert score_in_bounded_time("countdown", f"<answer>{answer}</answer>", REFERENCE) == 0


def test_numpy_references_are_read_and_have_no_gold_completion_without_a_solution_or_beyond_the_search() -> None:
    reference = {"numbers": np.array([79, 17, 60]), "target": np.int64(36), "split": "test"}
    assert Countdown()(RIGHT, reference).score == 1
    assert Countdown().gold_completion({"numbers": [1, 1], "target": 50}) is None
    assert Countdown().gold_completion({"numbers": [1, 2, 3, 4, 5], "target": 15}) is None


def test_every_published_problem_accepts_its_gold_answer() -> None:
    path = SHARED_DATA / "countdown_test.parquet"
    if not path.exists():
        pytest.skip("shared/data/countdown_test.parquet is not beside this checkout")
    rows = pandas.read_parquet(path, columns=["nums", "target"]).to_dict("records")
    assert len(rows) == 1024
    verifier = Countdown(use_all=True)
    for row in rows:
        reference = {"numbers": row["nums"], "target": row["target"]}
        gold = verifier.gold_completion(reference)
        assert gold is not None
        assert verifier(gold, reference).score == 1
        assert verifier(gold, {**reference, "target": row["target"] + 1}).score == 0
