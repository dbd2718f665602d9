"""The three kinds into which every published format of code tests falls."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


class UnusableTestsError(ValueError):
    """No program can be scored against these tests; the message says why."""


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
        accepted: the values that are right, any one of them. There are two where a format leaves open whether its
            expected value is wrapped in a list of one.
        keywords: its keyword arguments.
    """

    arguments: tuple[Any, ...]
    accepted: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FunctionCalls:
    """A function, or a method of ``class Solution``, that is called with values and compared by what it returns."""

    entry_point: str
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class TestProgram:
    """Tests that are code themselves. They run in a process of their own and call the answer from there.

    Attributes:
        kind: ``asserts`` = ``sources`` are statements, each one test; ``check`` = the one source defines
            ``check(candidate)``; ``pytest`` = the one source holds ``test_…`` functions.
        sources: the code of the tests.
        entry_point: the candidate of ``check``: a name, or such as ``Solution().rotate``.
        setup: run before the tests, beside them; it may use what the answer defines.
        preamble: run on both sides first, before the answer: the imports and helper functions that a prompt gives to
            the answer. Where the tests use such a helper, it is this one and not what the answer makes of it.
    """

    __test__ = False  # no test class of ours, whatever pytest reads into the name

    kind: Literal["asserts", "check", "pytest"]
    sources: tuple[str, ...]
    entry_point: str = ""
    setup: str = ""
    preamble: str = ""


Tests = StdinCases | FunctionCalls | TestProgram


@dataclass(frozen=True)
class Outcome:
    """What one test found.

    Attributes:
        passed: whether the answer did what the test asks.
        reason: what it did instead; for a passed test, empty.
        killed: the process was cut off at a limit of time or memory.
        waited_seconds: for a processor, which the row's time does not count; 0 where a process serves several tests.
    """

    passed: bool
    reason: str = ""
    killed: bool = False
    waited_seconds: float = 0.0
