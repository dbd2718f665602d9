"""Answers word for word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.rewards.verifiers.exact_match import ExactMatch


@pytest.mark.parametrize(
    ("completion", "reference", "score"),
    [
        ("Paris", "Paris", 1),
        (" New \n York ", "New  York", 1),
        ("<think>London?</think>Paris", "Paris", 1),
        ("<think>London?</think>It is: <answer>Paris</answer><|im_end|>", "Paris", 1),
        ("<answer>42</answer>", 42, 1),
        ("42", 42.0, 1),
        ("42.0", 42.0, 1),
        ("1e+22", 1e22, 1),
        ("2.5", 2.5, 1),
        ("7", np.int64(7), 1),
        ("paris", "Paris", 0),
        ("Paris</answer>", "Paris</answer>", 0),
        ("<answer>Paris</answer> or London", "Paris", 0),
        ("<think>Paris", "Paris", 0),
        ("Paris", " \n", None),
        ("Paris", ["Paris"], None),
        ("nan", float("nan"), None),
    ],
)
def test_score(completion, reference, score):
    assert ExactMatch()(completion, reference).score == score


def test_case_may_be_ignored():
    assert ExactMatch(case_sensitive=False)("STRASSE", "Straße").score == 1.0


@given(
    st.text(alphabet=st.characters(exclude_characters="<"), min_size=1)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
def test_gold_completion_is_right(reference):
    gold = ExactMatch().gold_completion(reference)
    assert gold is None if not str(reference).split() else ExactMatch()(gold, reference).score == 1.0
