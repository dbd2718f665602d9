"""One row of every published format: it is read, the right program passes it and the wrong ones do not.

The rows are made up; their fields and the way they are packed are those of the datasets.
"""

import base64
import contextlib
import json
import pickle
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.rewards.verifiers.code_tests.formats import read_tests
from evenkeel.rewards.verifiers.code_tests.kinds import FunctionCalls, StdinCases, TestProgram, UnusableTestsError
from evenkeel.rewards.verifiers.code_tests.verifier import CodeTests

CODE_TESTS, SHORT = CodeTests(), CodeTests(cpu_seconds=1.0)
SUM = "a, b = map(int, input().split())\nprint(a + b)"
DIFFERENCE = "a, b = map(int, input().split())\nprint(a - b)"
ADD = "def add(a, b):\n    return a + b"
SUBTRACT = "def add(a, b):\n    return a - b"
METHOD = "class Solution:\n    def add(self, a: int, b: int) -> int:\n        return a + b"
WRONG_METHOD = METHOD.replace("a + b", "a * b + 1")
STDIN = [{"input": "1 2\n", "output": "3\n"}, {"input": "5 7\n", "output": "12\n"}]
INPUTS, OUTPUTS = ["1 2\n", "5 7\n"], ["3\n", "12\n"]
CALLS = [
    {"input": "1\n2", "output": "3", "testtype": "functional"},
    {"input": "5\n7", "output": "12", "testtype": "functional"},
]
LIST_NODE = """
class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next
"""
LISTS = (
    "from typing import *\n"
    + LIST_NODE
    + """
def list_node(values):
    head = None
    for value in reversed(list(values)):
        head = ListNode(value, head)
    return head


def is_same_list(one, other):
    while one and other and one.val == other.val:
        one, other = one.next, other.next
    return one is other is None
"""
)
REVERSE = """
class Solution:
    def reverseList(self, head: Optional[ListNode]) -> Optional[ListNode]:
        last = None
        while head:
            head.next, last, head = last, head, head.next
        return last
"""


def compressed(value: Any) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(value)))).decode()


RLLM = """from typing import List

def check(candidate):
    assert candidate(a = 1, b = 2) == 3
    assert candidate(a = 5, b = 7) == 12


check(Solution().add)
"""
TEXTS = {"inputs": INPUTS, "outputs": OUTPUTS}
ASSERT = "assert add(1, 2) == 3"
# Rows by what they test: programs that read, functions, methods.
READ: dict[str, Any] = {
    "APPS": {"input_output": json.dumps(TEXTS)},
    "APPS, lines": {"inputs": [["1 2"], ["5 7"]], "outputs": [["3"], ["12"]]},
    "LiveCodeBench, hidden tests compressed": {
        "public_test_cases": json.dumps([{**STDIN[0], "testtype": "stdin"}]),
        "private_test_cases": compressed([{**STDIN[1], "testtype": "stdin"}]),
        "metadata": "{}",
        "starter_code": "",
    },
    "DeepCoder": {"tests": json.dumps([{**test, "testtype": "stdin_stdout", "metadata": {}} for test in STDIN])},
    "PrimeIntellect": {
        "verification_info": json.dumps(
            {"language": "python", "test_cases": [{**test, "type": "stdin_stdout", "fn_name": None} for test in STDIN]}
        )
    },
    "INTELLECT-2": {"verification_info": {"test_cases": json.dumps(TEXTS), "fn_name": None}},
    "Eurus-2": {"reward_model": {"ground_truth": json.dumps(TEXTS), "style": "rule"}},
    "CodeContests": {
        "public_tests": {"input": INPUTS[:1], "output": OUTPUTS[:1]},
        "private_tests": {"input": [], "output": []},
        "generated_tests": {"input": np.array(INPUTS[1:]), "output": np.array(OUTPUTS[1:])},
    },
    "Codeforces": STDIN,
}
CALLED: dict[str, Any] = {
    "TACO, JSON lines": json.dumps({"fn_name": "add", "inputs": ["1\n2", "5\n7"], "outputs": ["3", "12"]}),
    "DeepCoder": {"tests": json.dumps([{"type": "function_call", "fn_name": "add", "input": [1, 2], "output": [3]}])},
    "PrimeIntellect": {
        "verification_info": {
            "language": "python",
            "test_cases": [{"type": "function_call", "input": [1, 2], "output": 3, "fn_name": "add"}],
        }
    },
    "INTELLECT-2": {
        "verification_info": {"test_cases": json.dumps({"inputs": [[1, 2]], "outputs": [3]}), "fn_name": "add"}
    },
}
METHODS: dict[str, Any] = {
    "APPS, wrapped outputs": {
        "input_output": json.dumps({"fn_name": "add", "inputs": [[1, 2], [5, 7]], "outputs": [[3], [12]]})
    },
    "LiveCodeBench": {
        "public_test_cases": json.dumps(CALLS[:1]),
        "private_test_cases": json.dumps(CALLS[1:]),
        "metadata": json.dumps({"func_name": "add"}),
        "starter_code": "class Solution:\n    def add(self, a: int, b: int) -> int:\n        ",
    },
    "DeepCoder": {"tests": [{**test, "metadata": {"func_name": "add"}} for test in CALLS]},
}
ASSERTED: dict[str, Any] = {
    "sandbox fusion": {"assert_case": [ASSERT]},
    "MBPP": {
        "text": "Write a function to add.",
        "test_list": ["assert math.isclose(add(1, 2), 3)", "assert add(zero, 7) == 7"],
        "test_imports": ["import math"],
        "test_setup_code": "zero = 0",
    },
    "MBPP+": {
        "test_list": ["assert add(0, 0) == 0"],
        "test": "import numpy as np\n\ndef is_floats(x) -> bool:\n    return isinstance(x, float)\n\n"
        "def assertion(out, exp, atol):\n    if atol == 0 and is_floats(exp):\n        atol = 1e-6\n"
        "    if atol != 0 and is_floats(exp):\n        np.testing.assert_allclose(out, exp, rtol=1e-7, atol=atol)\n"
        "    else:\n        assert out == exp, f'out: {out}, exp: {exp}'\n\n"
        "inputs = [[1, 2], [0.1, 0.2]]\nresults = [3, 0.3]\n"
        "for i, (inp, exp) in enumerate(zip(inputs, results)):\n    assertion(add(*inp), exp, 0)\n",
    },
    "rLLM's LeetCode, asserts alone": {"tests": json.dumps({"functional": f"{ASSERT}\nassert add(5, 7) == 12\n"})},
    "KodCode": {
        "test_code": "from solution import add\nimport pytest\n\n"
        "@pytest.mark.parametrize('a, b, expected', [(1, 2, 3), pytest.param(5, 7, 12, id='more')])\n"
        "def test_add(a, b, expected):\n    assert add(a, b) == expected\n\n"
        "def test_floats():\n    assert add(0.1, 0.2) == pytest.approx(0.3)\n\n"
        "def test_types():\n    with pytest.raises(TypeError):\n        add(1, None)\n",
        "solution": ADD,
    },
    "the code of asserts": f"{ASSERT}\nassert add(5, 7) == 12",
    "the code of pytest": f"from solution import *\ndef test():\n    {ASSERT}",
}
CHECKED: dict[str, Any] = {
    "LeetCodeDataset": {
        "prompt": "from collections import *\n\nclass ListNode:\n    pass\n",
        "entry_point": "Solution().add",
        "test": "def check(candidate):\n    assert candidate(a = 1, b = 2) == 3\n"
        "    assert candidate(a = 5, b = 7) == 12\n",
        "input_output": [{"input": "a = 1, b = 2", "output": "3"}],
    },
    "rLLM's LeetCode": json.dumps({"functional": RLLM}),
}
HUMAN_EVAL = {
    "prompt": "from typing import List\n\n\ndef twice(x: int) -> int:\n    return 2 * x\n\n\n"
    "def add(a: int, b: int) -> int:\n    '''Add.'''\n",
    "canonical_solution": "    return a + b\n",
    "test": "METADATA = {}\n\ndef check(candidate):\n    assert candidate(1, 2) == 3\n"
    "    assert candidate(twice(5), b=7) == 17\n",
    "entry_point": "add",
}
INTEGER_KEYS = {"fn_name": "add", "inputs": [[{"1": 2}, 0]], "outputs": [{"1": 2}]}
LINKED_LISTS = {
    "prompt": LISTS,
    "entry_point": "Solution().reverseList",
    "test": "def check(candidate):\n"
    "    assert is_same_list(candidate(head = list_node([1,2,3])), list_node([3,2,1]))\n"
    "    assert is_same_list(candidate(head = list_node(range(500))), list_node(reversed(range(500))))\n"
    "    assert candidate(head = None) is None\n",
}
GROUPS = [
    (READ, StdinCases, SUM, DIFFERENCE),
    (CALLED, FunctionCalls, ADD, SUBTRACT),
    (METHODS, FunctionCalls, METHOD, WRONG_METHOD),
    (ASSERTED, TestProgram, ADD, SUBTRACT),
    (CHECKED, TestProgram, METHOD, WRONG_METHOD),
    (
        {"APPS, integer keys": INTEGER_KEYS},
        FunctionCalls,
        "def add(a, b):\n    assert 1 in a\n    return a",
        "def add(a, b):\n    return {'1': 3}",
    ),
    (
        {"HumanEval": HUMAN_EVAL},
        TestProgram,
        "def add(a: List[int], b):\n    return a + b",
        "def twice(x):\n    return -6\ndef add(a, b):\n    return 3 if a == 1 else a + b + 6",
    ),
    (
        {"LeetCodeDataset, linked lists, whose class the answer defines again": LINKED_LISTS},
        TestProgram,
        f"{LIST_NODE}\n{REVERSE}",
        f"{LIST_NODE}    __eq__ = lambda *_: True\n{REVERSE.replace('return last', 'return ListNode(2)')}",
    ),
]


@pytest.mark.parametrize(
    ("reference", "kind", "right", "wrong"),
    [
        pytest.param(row, kind, right, wrong, id=f"{name}, {kind.__name__}")
        for rows, kind, right, wrong in GROUPS
        for name, row in rows.items()
    ],
)
def test_format(reference: Any, kind: type, right: str, wrong: str) -> None:
    assert type(read_tests(reference)) is kind
    completions = [f"```python\n{right}\n```", f"```python\n{wrong}\n```", ""]
    verdicts = CODE_TESTS.judge_all(completions, [reference] * 3)
    assert [verdict.score for verdict in verdicts] == [1, 0, 0], verdicts


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("hello", "neither JSON nor compressed"),
        ({"question": "?", "answer": "42"}, "question, answer"),
        ({"inputs": ["1"], "outputs": []}, "not as many"),
        ({"inputs": ["1", "2"], "outputs": ["", "\n"]}, "output is empty"),
        (
            [{"input": "1", "output": "1", "testtype": "functional"}, {**STDIN[0], "testtype": "stdin"}],
            "some for a function",
        ),
        ({"verification_info": {"language": "cpp", "test_cases": STDIN}}, "'cpp'"),
        ({"private_test_cases": base64.b64encode(b"junk").decode()}, "neither JSON nor compressed"),
        ({"private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(print))).decode()}, "builtins.print"),
        ({"test_list": ["add(1, 2)"]}, "asserts nothing"),
        ({"test": "def check(candidate): assert candidate(1)", "entry_point": "os.system('x')"}, "names no function"),
        ({"test_list": ["assert 1 == 1"]}, "without using the answer"),
        ({"test_list": ["import not_there\nassert not_there.f(g(1))"]}, "not installed"),
        (
            {"test_code": "from solution import f\ndef test_a(capsys):\n    f()\n    assert capsys.readouterr()"},
            "capsys",
        ),
        ({"test_code": "import sys, io\ndef test_a():\n    sys.stdout = io.StringIO()\n    assert f()"}, "sys.stdout"),
        ({"inputs": [json.loads("[" * 200 + "]" * 200)], "outputs": [0], "fn_name": "add"}, "nested more than"),
        ({"test_list": ["while True: pass\nassert f()"]}, "was cut off"),
    ],
    ids=str,
)
def test_an_unusable_reference_is_unscored_and_says_why(reference: Any, says: str) -> None:
    verdict = SHORT("def add(a, b):\n    return a + b", reference)
    assert verdict.score is None
    assert says in verdict.reason


_FIELDS = (
    "inputs outputs fn_name tests test_cases verification_info test_list test test_code entry_point input output "
    "public_tests private_test_cases metadata type testtype assert_case reward_model ground_truth language"
)
_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["[]", "{", "assert f(1)"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_FIELDS.split()), inner, max_size=4),
)


@settings(deadline=None)
@given(_ANYTHING)
def test_no_reference_raises_anything_else(reference: Any) -> None:
    with contextlib.suppress(UnusableTestsError):
        read_tests(reference)


@pytest.mark.parametrize(
    ("row", "program"),
    [
        ({"solutions": json.dumps([ADD, SUBTRACT])}, ADD),
        ({"solutions": {"language": [1, 3], "solution": ["int main", ADD]}}, ADD),
        ({"prompt": "def add(a, b):\n", "canonical_solution": "    return a + b\n"}, ADD),
        ({"code": "\n" + ADD + "\n"}, ADD),
        ({"completion": METHOD}, METHOD),
        ({"code": "x = '```'"}, None),
        ({"solutions": "[]"}, None),
    ],
    ids=str,
)
def test_gold_completion(row: Any, program: str | None) -> None:
    assert CodeTests().gold_completion(row) == (None if program is None else f"```python\n{program}\n```")
