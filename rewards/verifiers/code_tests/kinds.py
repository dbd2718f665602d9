"""The three kinds of code tests, to which every published format is converted."""

from dataclasses import dataclass
from typing import Any, Literal


class UnusableTestsError(ValueError):
    """No program can be scored by these tests; the message says why."""


@dataclass(frozen=True)
class StdinCase:
    """A program reads ``input`` from standard input and must write ``output`` to standard output."""

    input: str
    output: str


@dataclass(frozen=True)
class StdinCases:
    """Whole programs, one run per case."""

    cases: tuple[StdinCase, ...]


@dataclass(frozen=True)
class Call:
    """One call of the entry point.

    Attributes:
        arguments: its positional arguments.
        accepted: the right values, any one of which passes. There are several if a format leaves open whether its
            expected value is wrapped in a list of one.
    """

    arguments: tuple[Any, ...]
    accepted: tuple[Any, ...]


@dataclass(frozen=True)
class FunctionCalls:
    """Calls of a function, or of a method of ``class Solution``, with the values that it should return."""

    entry_point: str
    cases: tuple[Call, ...]


@dataclass(frozen=True)
class TestProgram:
    """Tests that are code. They run in a process of their own and call the answer from there.

    Attributes:
        kind: ``asserts`` = ``sources`` are statements, each one test; ``check`` = the one source defines
            ``check(candidate)``; ``pytest`` = the one source holds ``test_…`` functions.
        sources: the code of the tests.
        entry_point: the candidate of ``check``: ``rotate`` or ``Solution().rotate``.
        setup: run before the tests, in their process; it may use the names of the answer.
        preamble: the prompt's imports and helper functions, run first on both sides, before the answer. If the tests
            use such a helper, they get this one, not one that the answer redefines.
    """

    __test__ = False  # pytest must not collect it for its name

    kind: Literal["asserts", "check", "pytest"]
    sources: tuple[str, ...]
    entry_point: str = ""
    setup: str = ""
    preamble: str = ""


Tests = StdinCases | FunctionCalls | TestProgram


@dataclass(frozen=True)
class Outcome:
    """The outcome of one test.

    Attributes:
        passed: true if the answer passed the test.
        reason: why it did not; empty if it passed.
        killed: the process was cut off at a limit of time or memory.
        waited_seconds: for a processor, not counted as the row's time; 0 if a process serves several tests.
    """

    passed: bool
    reason: str = ""
    killed: bool = False
    waited_seconds: float = 0.0
