"""What counts as the expected output or value."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.rewards.verifiers.code_tests.comparison import Comparison, output_mistake, same_value


@pytest.mark.parametrize(
    ("expected", "output", "livecodebench", "apps"),
    [
        ("1\n2", "1\n2\n", True, True),
        ("1\n2", "  1 \n2", True, True),
        ("1\r\n2\r\n", "1\n2", True, True),
        ("1\n2", "1", False, False),
        ("1\n2", "1\n\n2", False, True),
        ("1 2", "1  2", True, True),  # two numbers each; as texts they differ
        ("a b", "a  b", False, True),
        ("1 2", "12", False, False),
        ("1.0", "1.00", True, True),
        ("1e3", "1000", True, True),
        ("0.5", "0.5000001", False, True),
        ("0.5", "0.50001", False, False),
        ("100000", "100000.9", False, True),
        ("Yes", "yes", False, False),
        ("nan", "nan", True, True),
        ("nan", "NaN", False, False),
        ("sNaN", "1", False, False),
        ("inf", "1e999", False, False),
        ("1e400", "1e500", False, False),
        ("abc", "", False, False),
    ],
)
def test_outputs(expected: str, output: str, livecodebench: bool, apps: bool) -> None:
    assert (output_mistake(expected, output, "livecodebench") == "") is livecodebench
    assert (output_mistake(expected, output, "apps") == "") is apps


@pytest.mark.parametrize(
    ("expected", "value", "livecodebench", "apps"),
    [
        ([1, 2], (1, 2), True, True),
        ([[1, 2]], [(1, 2)], False, True),
        (1, 1.0, True, True),
        (1, True, True, True),
        (0.1 + 0.2, 0.3, False, True),
        (0.3, 0.30001, False, False),
        (1.5, "1.5", False, False),
        ([1, 2], [1], False, False),
        ([1], [1, 2], False, False),
        ({"1": 2}, {1: 2}, False, True),
        ({"a": [0.5]}, {"a": [0.5 + 1e-9]}, False, True),
        ([1, 2, 3], {1, 2, 3}, False, False),
        (None, None, True, True),
        ("", None, False, False),
        (float("nan"), float("nan"), False, False),
        (float("inf"), float("inf"), True, True),
        (10**400, 1.0, False, False),
        (1, Decimal("sNaN"), False, False),
    ],
)
def test_values(expected: Any, value: Any, livecodebench: bool, apps: bool) -> None:
    assert same_value(expected, value, "livecodebench") is livecodebench
    assert same_value(expected, value, "apps") is apps


@settings(deadline=None)
@given(st.text(alphabet="01.e- \nnaif", max_size=30), st.text(alphabet="01.e- \nnaif", max_size=30))
def test_what_is_right_by_the_strict_rule_is_right_by_the_tolerant_one(expected: str, output: str) -> None:
    assert output_mistake(expected, expected, "livecodebench") == ""
    if not output_mistake(expected, output, "livecodebench"):
        assert not output_mistake(expected, output, "apps")


@pytest.mark.parametrize("comparison", ["livecodebench", "apps"])
@pytest.mark.parametrize(
    "output", ["9" * 1_000_000, "1e999999999", "1 " * 500_000, "\n" * 1_000_000, "0." + "1" * 1_000_000, "1_" * 400_000]
)
def test_huge_outputs_are_compared(output: str, comparison: Comparison) -> None:
    for expected in ("1e999999", output[:-1] + "x", "0"):
        assert output_mistake(expected, output, comparison)
