"""What ships: a sandboxed Python, two games whose best policies are known, and a calculator."""

import ast
import math
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from evenkeel.rewards.isolation.sandbox import Limits, shared_sandbox


class PythonTool:
    """Runs Python in the sandbox (`rewards/isolation`): no network, no files of yours, limits of time and memory.

    Names that a call defines exist in the row's later calls: earlier programs that succeeded are run again first,
    without their output, and draw the same random numbers as before.

    Args:
        time_limit_s: processor seconds of a call; twice as much wall time.
        memory_mb: of address space.
    """

    def __init__(self, *, time_limit_s: float = 5.0, memory_mb: Annotated[int, Field(ge=16)] = 512) -> None:
        self._limits = Limits(
            cpu_seconds=time_limit_s, wall_seconds=2 * time_limit_s, memory_bytes=memory_mb << 20, output_bytes=1 << 16
        )

    def reset(self, **_: Any) -> None:
        """Forget what was defined, and draw the row's seed from the run's stream."""
        self._earlier = list[tuple[int, str]]()
        self._seeds = random.Random(random.getrandbits(64))

    def python(self, code: str) -> str:
        """Run a Python program and read what it prints.

        Args:
            code: The program. Only what it prints is returned.

        Returns:
            What was printed, or the error.
        """
        seed = self._seeds.getrandbits(32)
        run = shared_sandbox().run(_program(self._earlier, seed, code), limits=self._limits)
        if run.status in ("failed_to_start", "starved"):
            raise ConnectionError(f"the sandbox ran nothing: {run.problem or run.status}")
        printed = run.stdout.decode("utf-8", "replace")
        if run.status != "exited":
            return f"{printed}{run.status.replace('_', ' ')}: the program was ended at its limit."
        if run.exit_code != 0:
            return printed + run.stderr.decode("utf-8", "replace")[-2000:]
        self._earlier.append((seed, code))
        return printed


_BEGIN = """import atexit, contextlib, linecache, os, random, sys, numpy
names = {'__name__': '__main__'}
class Random(random.Random):
    def seed(self, number=None, version=2):
        super().seed(os.urandom(32) if number is None else number, version)
random._inst.__class__, random.Random = Random, Random
random.seed = random._inst.seed
def seed(number):
    random.seed(number)
    numpy.random.seed(number)
    os.urandom = random._urandom = random.Random(number).randbytes  # of secrets, uuid4 and numpy's default_rng
def again(number, code):
    leave, os._exit = os._exit, sys.exit
    seed(number)
    with contextlib.suppress(SystemExit):
        exec(compile(code, '<earlier>', 'exec'), names)
    atexit._run_exitfuncs()
    os._exit = leave
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.__stdout__.flush()
        os.ftruncate(1, 0)
        os.lseek(1, 0, 0)
"""


def _program(earlier: Sequence[tuple[int, str]], seed: int, code: str) -> str:
    lines = [f"again({number}, {program!r})" for number, program in earlier]
    shown = f"linecache.cache['<program>'] = (0, None, {code!r}.splitlines(True), '<program>')"
    return "\n".join([_BEGIN, *lines, shown, f"seed({seed}); exec(compile({code!r}, '<program>', 'exec'), names)"])


def _within(reference: Any, option: str, largest: int) -> int:
    number = int(reference)
    if not 1 <= number <= largest:
        raise ValueError(f"reference {number} is not within 1 to {option} = {largest}. Give both the same {option}.")
    return number


class Guessing:
    """Find a number between 1 and ``largest``; the answer to a guess is higher, lower or right.

    The number is the row's ``reference``. The reward is 1 for the number found within ``guesses`` guesses, else 0. Best
    policy: bisection, which always finds it in ⌈log2(largest + 1)⌉ guesses.
    """

    def __init__(self, *, largest: int = 7, guesses: int = 3) -> None:
        self._largest, self._most = largest, guesses

    def reset(self, *, reference: Any, **_: Any) -> None:
        """Start with the row's number."""
        self._number, self._guesses = _within(reference, "largest", self._largest), list[int]()

    def guess(self, number: int) -> str:
        """Guess the number.

        Args:
            number: The guess.

        Returns:
            Whether the number is higher, lower or found.
        """
        if self._number in self._guesses:
            return "right"
        if len(self._guesses) == self._most:
            return "no guesses left"
        if not isinstance(number, int):
            raise ValueError(f"{number!r} is no whole number.")
        self._guesses.append(number)
        return "right" if number == self._number else "higher" if self._number > number else "lower"

    def get_reward(self) -> float:
        """1 if the number was found, else 0."""
        return float(self._number in self._guesses)

    def state(self) -> str:
        """The range of numbers that are still possible."""
        low = max((guess for guess in self._guesses if guess < self._number), default=0) + 1
        high = min((guess for guess in self._guesses if guess > self._number), default=self._largest + 1) - 1
        return f"{low}-{high}"


class KeyDoor:
    """A corridor with a key at one end and a door at the other; the reward, 1 for the opened door, comes at its end.

    The row's ``reference`` is the start, from 1 to ``length``; the key lies at 1, the door at ``length``. Best
    policy: to the key, take it, to the door, open it: ``start − 1 + 1 + length − 1 + 1`` moves.
    """

    def __init__(self, *, length: int = 4, moves: int = 12) -> None:
        self._length, self._most = length, moves

    def reset(self, *, reference: Any, **_: Any) -> None:
        """Start at the row's place."""
        self._place = _within(reference, "length", self._length)
        if (least := self._place + self._length) > self._most:
            raise ValueError(f"the door takes {least} moves, and moves = {self._most}. Raise it.")
        self._has_key, self._is_open, self._moves = False, False, 0

    def move(self, action: str) -> str:
        """Act in the corridor.

        Args:
            action: One of left, right, take and open.

        Returns:
            What is seen then.
        """
        if self._is_open or self._moves == self._most:
            return "the door is open" if self._is_open else "no moves left"
        self._moves += 1
        if action in ("left", "right"):
            self._place = min(max(self._place + (1 if action == "right" else -1), 1), self._length)
        elif action == "take" and self._place == 1:
            self._has_key = True
        elif action == "open" and self._place == self._length and self._has_key:
            self._is_open = True
        elif action not in ("take", "open"):
            raise ValueError(f"{action!r} is no action. Write left, right, take or open.")
        return "the door is open" if self._is_open else self.state()

    def get_reward(self) -> float:
        """1 if the door is open, else 0."""
        return float(self._is_open)

    def state(self) -> str:
        """The place, and whether the policy has the key."""
        return f"place {self._place} of {self._length}, {'with' if self._has_key else 'without'} the key"


OPERATORS: Mapping[type, Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def calculator(expression: str) -> str:
    """Compute an arithmetic expression of numbers, + - * / // % ** and brackets.

    Args:
        expression: For example (3 + 4) * 2.

    Returns:
        The value.
    """
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except MemoryError:  # of CPython's parser
        raise ValueError("It is nested too deeply.") from None
    return str(int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = _value(node.left), _value(node.right)
        if abs(exponent) * math.log2(max(abs(base), 2)) > 4096:
            raise ValueError(f"{base} ** {exponent} is too large.")
        return base**exponent
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError(f"{ast.unparse(node)!r} is not arithmetic.")


ENVIRONMENTS: dict[str, Any] = {"python_tool": PythonTool, "guessing": Guessing, "key_door": KeyDoor}
TOOLS: dict[str, Callable[..., Any]] = {"calculator": calculator}
