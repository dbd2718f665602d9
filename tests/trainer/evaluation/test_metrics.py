"""avg@k, pass@k, maj@k and their intervals: numbers by hand, enumeration, and the invariants between them."""

import itertools
import json
import math
import resource
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest

from evenkeel.trainer.evaluation import Decoding, EvaluationResult
from evenkeel.trainer.evaluation.judging import logged_columns
from evenkeel.trainer.evaluation.metrics import average_correct, majority_correct, pass_at_k
from evenkeel.trainer.evaluation.shares import share_estimate

NAN = math.nan
shapes = st.tuples(st.integers(1, 4), st.integers(1, 6))
verdicts = arrays(np.float64, shapes, elements=st.sampled_from([0.0, 1.0, NAN]))


def test_pass_at_k_is_the_mean_over_all_choices_of_k():
    row = np.array([1, 0, 0, 1, 0], dtype=float)
    for k in range(1, 6):
        subsets = [max(subset) for subset in itertools.combinations(row, k)]
        assert pass_at_k(row[None], k)[0] == pytest.approx(np.mean(subsets))


@given(verdicts)
def test_pass_at_1_is_the_average(correct):
    np.testing.assert_allclose(pass_at_k(correct, 1), average_correct(correct))


@pytest.mark.parametrize(
    ("answers", "correct", "expected"),
    [
        (["7", " 7", "8", "9"], [1, 1, 0, 0], 1.0),
        (["8", "8", "7", None], [0, 0, 1, 0], 0.0),
        (["7", "8"], [1, 0], 1 / 2),  # a tie of two, one right
        (["7", "8", "9"], [1, 0, 0], 1 / 3),
        ([None, None, "7"], [0, 0, 1], 1.0),  # no answer, no vote
        ([None, None], [0, 0], 0.0),
        (["7", "8", "8"], [1, NAN, NAN], 1.0),  # the unscored do not vote
        (["7", "8"], [NAN, NAN], NAN),
    ],
)
def test_majority_by_hand(answers, correct, expected):
    np.testing.assert_equal(majority_correct([answers], np.array([correct], dtype=float))[0], expected)


@pytest.mark.parametrize(("right", "number"), [(0, 8), (3, 8), (50, 100), (100, 100), (1, 1)])
def test_of_yes_or_no_items_the_interval_is_wilsons(right: int, number: int):
    found = share_estimate(np.array([1.0] * right + [0.0] * (number - right)), number)
    reference = binomtest(right, number).proportion_ci(0.95, method="wilson")
    assert (found.value, found.low, found.high) == pytest.approx((right / number, reference.low, reference.high))


@pytest.mark.parametrize("values", [[0.5] * 10, [0.4999, 0.5001] * 5])
def test_items_that_agree_count_as_many_as_there_are_completions_and_no_more(values: list[float]):
    found = share_estimate(np.array(values), 40)
    reference = binomtest(20, 40).proportion_ci(0.95, method="wilson")
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high))


@given(arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1)), st.integers(12, 100))
def test_the_interval_holds_its_mean_and_stays_between_0_and_1(values, completions):
    found = share_estimate(values, completions)
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 2.0)])
def test_the_interval_covers_the_population_mean(a: float, b: float):
    """50 items of beta-distributed difficulty, 4 samples each, 2,000 draws: nominal 95 %."""
    generator = np.random.default_rng(0)
    difficulty = generator.beta(a, b, (2000, 50))
    shares = generator.binomial(4, difficulty) / 4
    found = [share_estimate(values, 200) for values in shares]
    covered = np.mean([each.low <= a / (a + b) <= each.high for each in found])
    assert 0.93 <= covered <= 0.97


def test_numbers_of_numpy_and_torch_are_logged_as_pythons():
    found = logged_columns({"correct": [0, np.bool_(True), torch.tensor(0.5)], "of one row": [1]}, 2)
    assert str(found) == "{'correct': [True, 0.5]}"


RECORD = {"item": 0, "sample": 0, "greedy": True, "group": None, "correct": None, "answer": None, "num_tokens": 3}


def test_files_are_there_whole_or_not_at_all(tmp_path: Path):
    """A limit on the size of files stands for a disk that fills up: what was written before stays as it was."""
    record = {**RECORD, "truncated": False, "reward": None, "prompt": "1?", "seen": 1}
    other = {**record, "item": 1, "seen": ["a"], "judge/score": 0.5}
    result = EvaluationResult("test", 5, [Decoding(greedy=True)], [record, other], seconds=1.0)
    path = result.write(tmp_path)
    read = pandas.read_parquet(path)  # what rows log only now and then, and of no one type
    assert (read["seen"].tolist(), read["judge/score"][1]) == (["1", '["a"]'], 0.5)
    assert sorted(file.name for file in path.parent.iterdir()) == ["step-000005.json", "step-000005.parquet"]
    assert json.loads(path.with_suffix(".json").read_text())["greedy"] == {"value": None, "low": None, "high": None}
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            result.write(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
