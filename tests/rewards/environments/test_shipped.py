"""The games' best policies win, and no other does more; Python runs in the sandbox; the calculator computes."""

import math
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.rewards.environments import build_environment, trial_problem
from evenkeel.rewards.environments.shipped import Guessing, KeyDoor, PythonTool, calculator
from tests.paths import ROOT


@pytest.mark.parametrize("largest", [1, 3, 7, 15])
def test_bisection_always_finds_the_number(largest: int):
    guesses = math.ceil(math.log2(largest + 1))
    for number in range(1, largest + 1):
        game = Guessing(largest=largest, guesses=guesses)
        game.reset(reference=str(number))
        low, high = 1, largest
        while (answer := game.guess(middle := (low + high) // 2)) != "right":
            low, high = (middle + 1, high) if answer == "higher" else (low, middle - 1)
            assert game.state() == f"{low}-{high}"
        assert game.get_reward() == 1.0


@pytest.mark.parametrize("start", [1, 2, 3, 4])
def test_the_key_and_then_the_door(start: int):
    best = ["left"] * (start - 1) + ["take"] + ["right"] * 3 + ["open"]
    for actions, reward in ((best, 1.0), (["open", *best], 0.0)):
        game = KeyDoor(length=4, moves=len(best))
        game.reset(reference=start)
        assert game.state() == f"place {start} of 4, without the key"
        answers = [game.move(action) for action in actions]
        assert game.get_reward() == reward
        assert answers[-1] == ("the door is open" if reward else "no moves left")
    with pytest.raises(ValueError, match=f"takes {len(best)} moves, and moves = {len(best) - 1}"):
        KeyDoor(length=4, moves=len(best) - 1).reset(reference=start)


ENDINGS = [
    "sys.exit()",
    "os._exit(0)",
    "sys.stdout.buffer.write(b'a')",
    "os.write(1, b'a')",
    "atexit.register(print, 1)",
]


def test_python_keeps_names_between_calls_and_forgets_them_at_a_reset():
    tool = PythonTool()
    tool.reset()
    assert tool.python("x = 3\nprint('said once')") == "said once\n"
    assert tool.python("print(x + 1)") == "4\n"
    assert "ZeroDivisionError" in tool.python("y = 1\nx / 0")
    assert "NameError" in tool.python("y"), "a program that failed is not run again"
    tool.reset()
    assert "NameError" in tool.python("x")
    for last in ENDINGS:
        tool.reset()
        tool.python(f"import atexit, os, sys\ny, out = 4, sys.stdout\n{last}")
        assert tool.python("print(y, file=out)") == tool.python("print(y)") == "4\n", last


DRAWN = """import random, secrets, uuid
import numpy as np
drawn = [random.random(), random.SystemRandom().random(), np.random.rand(), np.random.default_rng().random()]
drawn += [secrets.token_hex(4), uuid.uuid4().hex, random.randint(1, 9**9), random.Random().random()]
random.seed()
drawn.append(random.random())
print(drawn)"""


def test_what_python_drew_stays_drawn_and_is_drawn_again_from_the_runs_stream():
    said: list[list[str]] = []
    for seed in (1, 1, 2):
        random.seed(seed)
        tool = PythonTool()
        tool.reset()
        first = tool.python(DRAWN)
        assert "ZeroDivisionError" in tool.python("import random; random.random() / 0")
        assert tool.python("print(drawn)") == first
        said.append([first, tool.python(DRAWN)])
        tool.reset()
        said[-1].append(tool.python(DRAWN))
    assert said[0] == said[1]
    assert len({*said[0], *said[2]}) == 6


def test_python_at_its_limit():
    tool = PythonTool(time_limit_s=0.5)
    tool.reset()
    assert "killed cpu" in tool.python("print('begun', flush=True)\nwhile True: pass")
    assert "Error" in tool.python("open('/etc/hostname').read()")


def test_the_documented_environment_works():
    block, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "docs/environments.md").read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    kind = build_environment(names["Shop"])
    rows = [{"prompt": "Buy it.", "reference": "tea", "task": None}]
    assert trial_problem(kind, {"data.train": rows}) == ""
    shop: Any = kind()
    shop.reset(**rows[0])
    assert shop.buy("tea") == "1 bought"
    assert shop._asked("get_reward") == 1.0


NUMBERS = st.integers(-50, 50)
EXPRESSIONS = st.recursive(
    NUMBERS.map(lambda number: f"({number})"),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(
        lambda parts: f"({' '.join(parts)})"
    ),
    max_leaves=6,
)


@given(EXPRESSIONS)
def test_the_calculator_is_pythons_arithmetic(expression: str):
    try:
        expected: Any = eval(expression)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            calculator(expression)
        return
    assert float(calculator(expression)) == expected


@pytest.mark.parametrize(
    "expression",
    ["__import__('os')", "x", "[1]", "True", "9 ** 9 ** 9", "2 ** 100_000", "1 if 2 else 3", "", "-" * 9000 + "1"],
)
def test_the_calculator_computes_nothing_else(expression: str):
    with pytest.raises((ValueError, SyntaxError)):
        calculator(expression)
