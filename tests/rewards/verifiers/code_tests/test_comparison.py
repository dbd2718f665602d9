"""What counts as the expected output or value."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.rewards.verifiers.code_tests.comparison import output_mistake, same_value


@pytest.mark.parametrize(
    ("expected", "output", "right"),
    [
        ("1\n2", "1\n2\n", True),
        ("1\n2", "  1 \n2", True),
        ("1\r\n2\r\n", "1\n2", True),
        ("1\n2", "1", False),
        ("1\n2", "1\n\n2", False),
        ("1 2", "1  2", True),  # two numbers each; as texts they differ
        ("a b", "a  b", False),
        ("1 2", "12", False),
        ("1.0", "1.00", True),
        ("1e3", "1000", True),
        ("0.5", "0.5000001", False),
        ("0.5", "0.50001", False),
        ("100000", "100000.9", False),
        ("Yes", "yes", False),
        ("nan", "nan", True),
        ("nan", "NaN", False),
        ("sNaN", "1", False),
        ("inf", "1e999", False),
        ("1e400", "1e500", False),
        ("abc", "", False),
    ],
)
def test_outputs(expected: str, output: str, right: bool) -> None:
    assert (output_mistake(expected, output) == "") is right


@pytest.mark.parametrize(
    ("expected", "value", "right"),
    [
        ([1, 2], (1, 2), True),
        ([[1, 2]], [(1, 2)], False),
        (1, 1.0, True),
        (1, True, True),
        (0.1 + 0.2, 0.3, False),
        (0.3, 0.30001, False),
        (1.5, "1.5", False),
        ([1, 2], [1], False),
        ([1], [1, 2], False),
        ({"1": 2}, {1: 2}, False),
        ({"a": [0.5]}, {"a": [0.5 + 1e-9]}, False),
        ([1, 2, 3], {1, 2, 3}, False),
        (None, None, True),
        ("", None, False),
        (float("nan"), float("nan"), False),
        (float("inf"), float("inf"), True),
        (10**400, 1.0, False),
        (1, Decimal("sNaN"), False),
    ],
)
def test_values(expected: Any, value: Any, right: bool) -> None:
    assert same_value(expected, value) is right


@settings(deadline=None)
@given(st.text(alphabet="01.e- \nnaif", max_size=30))
def test_a_text_is_itself(expected: str) -> None:
    assert output_mistake(expected, expected) == ""


@pytest.mark.parametrize(
    "output", ["9" * 1_000_000, "1e999999999", "1 " * 500_000, "\n" * 1_000_000, "0." + "1" * 1_000_000, "1_" * 400_000]
)
def test_huge_outputs_are_compared(output: str) -> None:
    for expected in ("1e999999", output[:-1] + "x", "0"):
        assert output_mistake(expected, output)
