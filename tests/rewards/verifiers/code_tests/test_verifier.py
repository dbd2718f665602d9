"""The code verifier: what it makes of a completion, at its limits, in batches, and in tests that are code."""

import json
from pathlib import Path
from typing import Any

import pytest

from evenkeel.rewards.verifier import Verdict
from evenkeel.rewards.verifiers.code_tests.kinds import Call, FunctionCalls, StdinCase, StdinCases
from evenkeel.rewards.verifiers.code_tests.verifier import CodeTests, limited

ADD = "def add(a, b):\n    return a + b"
CALLS = {"inputs": [[1, 2], [5, 7], [0, 0]], "outputs": [3, 12, 0], "fn_name": "add"}
STDIN = {"inputs": ["1 2\n", "5 7\n", "0 0\n"], "outputs": ["3\n", "12\n", "0\n"]}
ASSERTS = ["assert add(1, 2) == 3", "assert add(5, 7) == 12", "assert add(0, 0) == 0"]
FEATURES = json.loads(Path(__file__).with_name("features.json").read_text(encoding="utf-8"))


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


HUGE = """
import os, struct
reply = b"[" + b"[]," * (3 << 20) + b"[]]"
reply = struct.pack("<I", len(reply)) + reply
def add(a, b):
    left = reply
    while left:
        left = left[os.write(3, left):]
    return a + b
"""


def test_after_a_reply_that_is_too_long_no_call_passes() -> None:
    verdict = CodeTests(score="fraction")(
        fenced(HUGE.replace("left = reply", "left = reply if a == 5 else b''")), CALLS
    )
    assert verdict.score == pytest.approx(1 / 3)
    assert "bytes" in verdict.reason
    long = {"inputs": [[1]], "outputs": ["x" * (3 << 20)], "fn_name": "f"}
    assert CodeTests()(fenced("def f(x):\n    return 'x' * (3 << 20)"), long).score == 1


@pytest.mark.parametrize("reference", [CALLS, {"test_list": ASSERTS}], ids=["function", "asserts"])
def test_fraction_is_the_share_of_tests_and_what_comes_after_a_cut_is_not_passed(reference: Any) -> None:
    code = "def add(a, b):\n    assert a != 5\n    return a + b"
    verdict = CodeTests(score="fraction")(fenced(code), reference)
    assert verdict.score == pytest.approx(2 / 3), verdict.reason
    assert verdict.reason.startswith("passes 2 of 3 tests; test 2")
    assert CodeTests()(fenced(code), reference).score == 0
    cut = CodeTests(score="fraction", cpu_seconds=0.5)(
        fenced(code.replace("assert a != 5", "while a == 5: pass")), reference
    )
    assert (cut.score, cut.killed) == (pytest.approx(1 / 3), True)


BEYOND_LIMITS: list[tuple[Any, str, str]] = [
    (STDIN, "while True:\n    pass", "cut off"),
    (STDIN, "import time\ntime.sleep(60)", "wall time"),
    (STDIN, "x = [0] * 10 ** 10\nprint(3)", "MemoryError"),
    (STDIN, "print('3' * 10 ** 8)", "File too large"),
    (CALLS, "def add(a, b):\n    while True: pass", "cut off"),
    (CALLS, "def add(a, b):\n    return 1 << 10 ** 8", "CodecError"),
    (CALLS, "def add(a, b):\n    return add(a, b)", "RecursionError"),
    (CALLS, "import ctypes\ndef add(a, b):\n    ctypes.string_at(0)", "crashed"),
    ({"test_list": ASSERTS}, "def add(a, b):\n    while True: pass", "cut off"),
    (
        {"test_list": ["assert list(add(1, 2)) == [3]"]},
        "import itertools\nadd = lambda a, b: itertools.repeat(3)",
        "cut off",
    ),
]


@pytest.fixture(scope="module")
def cut_off() -> list[Verdict]:
    verifier = CodeTests(cpu_seconds=0.5)
    return verifier.judge_all([fenced(code) for _, code, _ in BEYOND_LIMITS], [row[0] for row in BEYOND_LIMITS])


@pytest.mark.parametrize("number", range(len(BEYOND_LIMITS)), ids=lambda number: BEYOND_LIMITS[number][1])
def test_a_program_beyond_its_limits_is_wrong(cut_off: list[Verdict], number: int) -> None:
    verdict, says = cut_off[number], BEYOND_LIMITS[number][2]
    assert verdict.score == 0
    assert says in verdict.reason
    assert verdict.killed == (says in ("cut off", "wall time", "crashed")), verdict.reason


def test_each_call_has_the_limits_to_itself() -> None:
    """Three calls of 0.25 seconds each under a limit of 0.6 seconds: the honest program passes all of them."""
    busy = "    end = time.process_time() + 0.25\n    while time.process_time() < end: pass\n"
    code = f"import time\ndef add(a, b):\n{busy}    return a + b"
    assert CodeTests(cpu_seconds=0.6)(fenced(code), CALLS).score == 1


def test_a_verdict_does_not_depend_on_the_batch() -> None:
    programs = [
        ADD,
        "def add(a, b):\n    return a - b",
        "import os\nos._exit(0)",
        "x",
        "",
        "def add(a, b):\n    return object()",
    ]
    rows: list[tuple[str, Any]] = [
        (fenced(code), reference) for code in programs for reference in (CALLS, {"test_list": ASSERTS})
    ]
    rows.append((fenced(ADD), {"no": "tests"}))
    rows.append(("a, b = map(int, input().split())\nprint(a + b)", STDIN))
    alone = [CodeTests()(completion, reference) for completion, reference in rows]
    batch = CodeTests().judge_all(*map(list, zip(*rows, strict=True)))
    assert batch == alone
    assert all(verdict.seconds is not None for verdict in batch)
    backwards = CodeTests().judge_all(*map(list, zip(*rows[::-1], strict=True)))
    assert backwards == alone[::-1]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature["name"])
def test_what_tests_can_do_with_an_answer(feature: dict[str, Any]) -> None:
    verdict = CodeTests()(fenced("\n".join(feature["answer"])), ["\n".join(feature["tests"])])
    assert verdict.score == 1, verdict.reason


PYTEST = """
import unittest
import pytest
from solution import Account, Empty, total


def test_account():
    account = Account(5)
    account.add(100)
    assert account.balance == 105


def test_own_exception():
    account = Account(5)
    with pytest.raises(Empty, match="only 5") as caught:
        account.take(10)
    assert "only" in str(caught.value)
    with pytest.raises((TypeError, ValueError)):
        account.add("x")


class TestTotal:
    def setup_method(self):
        self.values = [1, 2]

    @pytest.mark.parametrize("more", [0, 1])
    @pytest.mark.parametrize(("factor", "expected"), [(1, 3), (2, 6)])
    def test_total(self, factor, expected, more):
        assert total([value * factor for value in self.values]) + more == expected + more


class Old(unittest.TestCase):
    def setUp(self):
        self.values = [0.1, 0.2]

    def test_total(self):
        self.assertAlmostEqual(total(self.values), 0.3)
        with self.assertRaises(TypeError):
            total(5)
"""
ACCOUNT = """
class Empty(Exception):
    pass

class Account:
    def __init__(self, balance):
        self.balance = balance
    def add(self, amount):
        self.balance += amount
    def take(self, amount):
        if amount > self.balance:
            raise Empty(f"only {self.balance}")
        self.balance -= amount

def total(values):
    return sum(values)
"""


def test_pytest_features() -> None:
    verdict = CodeTests(score="fraction")(fenced(ACCOUNT), {"test_code": PYTEST})
    assert verdict.reason == "passes all 7 tests"
    for right, wrong in (("self.balance += amount", "pass"), ("only {", "just {"), ("sum(values)", "sum(values) + 1")):
        verdict = CodeTests()(fenced(ACCOUNT.replace(right, wrong)), {"test_code": PYTEST})
        assert verdict.score == 0, wrong


@pytest.mark.parametrize(
    "reference",
    [
        {"test": "def check(candidate):\n    assert len(candidate([1])) == 2", "entry_point": "f"},
        {"test_code": "import solution\ndef test_f():\n    assert len(solution.f([1])) == 2"},
        {"test_code": "from solution import *\ndef test_f():\n    assert len(f([1])) == 2"},
        {"test_list": ["assert len(f([1])) == 2"]},
    ],
    ids=["check", "module", "star", "asserts"],
)
def test_the_only_builtin_that_tests_call_stays_python_s(reference: Any) -> None:
    assert CodeTests()(fenced("def f(x):\n    return [1, 2]"), reference).score == 1
    assert CodeTests()(fenced("def f(x):\n    return x\ndef len(x):\n    return 2"), reference).score == 0


@pytest.mark.parametrize(
    "reference", [{"inputs": [[4, 6]], "outputs": [2], "fn_name": "gcd"}, {"test_list": ["assert gcd(4, 6) == 2"]}]
)
def test_a_name_that_needs_no_import_is_not_the_answer(reference: Any) -> None:
    assert CodeTests()(fenced("x = gcd(1, 2)"), reference).score == 0
    assert CodeTests()(fenced("from math import gcd"), reference).score == 1


SEARCH = """
import gc
def f(x):
    word = "-".join(["expected", "7f3a"])
    return sum(word in str(thing)[:100_000] for thing in gc.get_objects() if type(thing) in (dict, list, tuple))
"""


@pytest.mark.parametrize(
    "reference",
    [
        {"inputs": [[1]], "outputs": ["expected-7f3a"], "fn_name": "f"},
        {"test_list": ["assert f(1) == 'expected-7f3a'"]},
        {"test": "def check(candidate):\n    assert candidate(1) == 'expected-7f3a'", "entry_point": "f"},
        {"test_code": "from solution import f\ndef test_f():\n    assert f(1) == 'expected-7f3a'"},
    ],
    ids=["function", "asserts", "check", "pytest"],
)
def test_a_program_finds_nothing_of_what_is_expected_in_its_memory(reference: Any) -> None:
    reason = CodeTests()(fenced(SEARCH), reference).reason
    assert "returned 0" in reason, reason


def test_limited_keeps_the_longest_inputs_in_their_order() -> None:
    cases = StdinCases(tuple(StdinCase("x" * length, "y") for length in (3, 1, 5, 4)))
    assert [len(case.input) for case in limited(cases, 2).cases] == [5, 4]  # type: ignore[union-attr]
    calls = FunctionCalls("f", tuple(Call((value,), (0,)) for value in (1, 1000, 10, 100)))
    assert [call.arguments for call in limited(calls, 3).cases] == [(1000,), (10,), (100,)]  # type: ignore[union-attr]
    assert limited(cases, None) is cases
