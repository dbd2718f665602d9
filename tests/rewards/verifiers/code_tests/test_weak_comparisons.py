"""Answers that judge themselves: tests that compare by more than ``==`` must not ask the answer how it did.

`weak_comparisons.json` holds the ways in which tests compare, the objects that try to decide them, and each of these
is tried on each of those, in every kind of test.
"""

import json
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from evenkeel.rewards.verifiers.code_tests.verifier import CodeTests

TABLE = json.loads(Path(__file__).with_name("weak_comparisons.json").read_text(encoding="utf-8"))
STATEMENTS: list[str] = TABLE["statements"]
ANSWERS: dict[str, list[str]] = TABLE["answers"]
HONEST = "def half(x):\n    return x / 2\ndef evens(n):\n    return list(range(0, n, 2))"


def reference(kind: str) -> Any:
    """Every statement a test of its own; of ``check``, which is one test, there is a reference for each."""
    if kind == "asserts":
        return STATEMENTS
    tests = (f"def test_{number}():\n{indent(code, '    ')}\n\n\n" for number, code in enumerate(STATEMENTS))
    return {"test_code": "from solution import evens, half\n\n\n" + "".join(tests)}


def check(statement: str) -> dict[str, str]:
    body = indent(statement, "    ")
    return {"test": f"def check(candidate):\n    half = candidate\n{body}\n", "entry_point": "half"}


@pytest.mark.parametrize("kind", ["asserts", "pytest"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_no_object_decides_how_it_compares(answer: str, kind: str) -> None:
    completion = "```python\n" + "\n".join(ANSWERS[answer]) + "\n```"
    verdict = CodeTests(score="fraction")(completion, reference(kind))
    assert verdict.score == 0, verdict.reason


@pytest.mark.parametrize("answer", ANSWERS)
def test_nor_as_a_candidate(answer: str) -> None:
    completion = "```python\n" + "\n".join(ANSWERS[answer]) + "\n```"
    tests = [check(statement) for statement in STATEMENTS[::4]]
    verdicts = CodeTests().judge_all([completion] * len(tests), tests)
    assert [verdict for verdict in verdicts if verdict.score != 0] == []


@pytest.mark.parametrize("kind", ["asserts", "pytest"])
def test_the_honest_answer_passes(kind: str) -> None:
    verdict = CodeTests()(f"```python\n{HONEST}\n```", reference(kind))
    assert verdict.score == 1, verdict.reason
    verdict = CodeTests()(f"```python\n{HONEST}\n```", check("\n".join(STATEMENTS)))
    assert verdict.score == 1, verdict.reason


FORGED = """
import os, struct, json
def exchange():
    reply = json.dumps(FRAME).encode()
    os.write(3, struct.pack('<I', len(reply)) + reply)
    size = b''
    while len(size) < 4:
        size += os.read(3, 4 - len(size)) or os._exit(0)
    left, = struct.unpack('<I', size)
    while left:
        left -= len(os.read(3, left))
def f(xs):
    while True:
        exchange()
"""


@pytest.mark.parametrize(
    "frame",
    [
        ["list", "value", ["list"], ["list", ["list"]]],
        ["list", "value", None, ["list", ["list"], ["list"]]],
        ["list", "value", True, ["list", ["list", 1], ["list"]]],
    ],
    ids=str,
)
def test_a_forged_reply_does_not_empty_the_arguments(frame: Any) -> None:
    code = FORGED.replace("FRAME", repr(frame))
    statement = "xs = [3, 1, 2]\ngot = f(xs)\nassert (got or []) == sorted(xs)"
    in_pytest = f"from solution import f\ndef test_f():\n{indent(statement, '    ')}"
    for tests in ([statement], {"test_code": in_pytest}):
        assert CodeTests(cpu_seconds=2.0)(f"```python\n{code}\n```", tests).score == 0


COUNTER = "class Counter:\n    def __init__(self, *a): pass\n    def __eq__(self, o): return True"


@pytest.mark.parametrize(
    ("code", "test"),
    [
        (COUNTER, "Counter(f([1])) == Counter([2])"),
        (
            COUNTER + "\nclass collections:\n    Counter = Counter",
            "collections.Counter(f(1)) == collections.Counter([2])",
        ),
        ("class np:\n    allclose = staticmethod(lambda *a: True)", "np.allclose(f(3), 2.5)"),
        ("def isclose(*a): return True", "isclose(len(f(3)), 2.5)"),
        ("inf = -1", "len(f(3)) > inf - 1"),
    ],
)
@pytest.mark.parametrize("kind", ["asserts", "check", "pytest", "module"])
def test_a_name_that_everybody_knows_is_not_the_answer_s(code: str, test: str, kind: str) -> None:
    tests: Any = {
        "asserts": [f"assert {test}"],
        "check": {"test": f"def check(candidate):\n    f = candidate\n    assert {test}", "entry_point": "f"},
        "pytest": {"test_code": f"from solution import f\ndef test_f():\n    assert {test}"},
        "module": {"test_code": f"import solution\ndef test_f():\n    f = solution.f\n    assert {test}"},
    }[kind]
    verdict = CodeTests()(f"```python\n{code}\ndef f(x):\n    return [7]\n```", tests)
    assert verdict.score == 0, verdict.reason


def test_an_object_that_tests_make_keeps_its_operators_until_the_answer_returns_it() -> None:
    code = """
class Circle:
    def __init__(self, radius): self.radius = radius
    def __contains__(self, point): return abs(point) <= self.radius
    def __sub__(self, other): return 0.0
    def area(self): return self
"""
    tests = ["c = Circle(2)\nassert 1 in c and 3 not in c", "c = Circle(2)\nassert abs(c.area() - 12.56) < 0.01"]
    assert CodeTests(score="fraction")(f"```python\n{code}\n```", tests).score == 0.5
