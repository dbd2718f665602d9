"""Noise of verdicts: rates that are met, draws that depend on content alone, and truth that stays true."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evenkeel.rewards import build_verifier, reward_functions
from evenkeel.rewards.noise import RewardNoise, noisily_right, uniform
from tests.rewards.test_reward_function import Logs

REFERENCE = {"numbers": [3, 4], "target": 7}
RIGHT, WRONG = "<answer> 3 + 4 </answer>", "<answer> 3 * 4 </answer>"
RATES = st.floats(0.01, 1)


def noisy(noise: RewardNoise, right: bool, **of_row: Any) -> bool:
    known = {"label": "count", "row_key": 1, "problem": ["a", 7], "completion": "3 + 4 = 7", "answer": "7"}
    return noisily_right(noise, right, **{**known, **of_row})


@pytest.mark.parametrize("kind", ["random", "systematic"])
def test_the_rates_are_met(kind: Any):
    """6,000 draws at 0.05 and 0.15 have standard errors of 0.003 and 0.005."""
    noise = RewardNoise(false_positive=0.05, false_negative=0.15, kind=kind)
    rows = [{"row_key": row, "answer": str(row)} for row in range(6000)]
    assert sum(noisy(noise, False, **row) for row in rows) / 6000 == pytest.approx(0.05, abs=0.01)
    assert sum(not noisy(noise, True, **row) for row in rows) / 6000 == pytest.approx(0.15, abs=0.015)


@given(RATES, RATES, st.booleans(), st.integers(-(2**63), 2**63 - 1))
def test_lower_rates_turn_round_a_part_of_what_higher_ones_do(one: float, other: float, right: bool, key: int):
    low, high = (RewardNoise(false_positive=rate, false_negative=rate) for rate in sorted((one, other)))
    if noisy(low, right, row_key=key) != right:
        assert noisy(high, right, row_key=key) != right


def test_random_noise_is_of_the_sample_and_systematic_noise_of_what_was_answered():
    half = RewardNoise(false_positive=0.5, false_negative=0.5)
    by_answer = RewardNoise(**half.model_dump() | {"kind": "systematic"})
    samples = [{"row_key": key, "answer": "7"} for key in range(64)]
    answers = [{"row_key": 1, "answer": str(answer)} for answer in range(64)]

    def seen(noise: RewardNoise, rows: list[dict[str, Any]]) -> int:
        return len({noisy(noise, True, **row) for row in rows})

    assert [seen(half, samples), seen(by_answer, samples), seen(by_answer, answers)] == [2, 1, 2]


def test_a_pattern_bounds_where_errors_are_and_a_draw_is_pinned():
    """By `b2sum -l 64` of ``[0, "count", [1, "3 + 4"]]``: a run goes on with the same errors in another version."""
    assert uniform(0, "count", [1, "3 + 4"]) == (0xB306A3F41E72A260 >> 11) * 2.0**-53
    noise = RewardNoise(false_positive=1.0, matching=r"\*")
    assert noisy(noise, False, completion="3 * 4")
    assert not noisy(noise, False, completion="3 + 4")
    with pytest.raises(ValidationError, match="no regular expression"):
        RewardNoise(false_positive=0.1, matching="(")


def scored(noise: RewardNoise | None, **more: Any) -> tuple[list[float | None], dict[str, Any], dict[str, list[float]]]:
    """Scores, columns and metrics of a right, a wrong and an unscored completion."""
    logs = Logs()
    (function,) = reward_functions({"count": build_verifier("countdown")}, noise={"count": noise})
    more |= {"prompts": [""] * 3, "reference": [REFERENCE, REFERENCE, {"numbers": "unusable"}]}
    return function(completions=[RIGHT, WRONG, RIGHT], **more, **logs.hooks), logs.columns, logs.metrics


def test_training_is_told_what_the_noise_says_and_the_truth_is_logged_and_told_to_evaluations():
    always = RewardNoise(false_positive=1.0, false_negative=1.0, wrong_score=-2.0)
    scores, columns, metrics = scored(always, row_key=[1, 2, 3])
    assert scores == [-2.0, 1.0, None]
    assert (columns["correct"], columns["noisy_correct"]) == ([True, False, None], [False, True, None])
    assert metrics["verifier/accuracy"] == metrics["verifier/count/accuracy"] == [1.0, 0.0]
    # an evaluation hands over no keys
    plain, noisy = scored(None), scored(RewardNoise(false_positive=1.0, false_negative=1.0))
    assert plain[0] == noisy[0] == [1.0, 0.0, None]
    assert plain[1].keys() == noisy[1].keys()
