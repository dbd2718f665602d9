"""Does the program in this completion do what its tests ask?"""

import ast
import math
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from evenkeel.rewards.extraction import code_block
from evenkeel.rewards.isolation.sandbox import Isolation, Limits, Sandbox
from evenkeel.rewards.verifier import Verdict, Verifier
from evenkeel.rewards.verifiers.code_tests.answer_session import JudgeFailedError, StarvedError
from evenkeel.rewards.verifiers.code_tests.comparison import Comparison
from evenkeel.rewards.verifiers.code_tests.formats import read_tests
from evenkeel.rewards.verifiers.code_tests.formats.gold import gold_program
from evenkeel.rewards.verifiers.code_tests.inside.names import is_installed, names_of
from evenkeel.rewards.verifiers.code_tests.inside.standard_names import WHOLE_MODULES
from evenkeel.rewards.verifiers.code_tests.kinds import (
    FunctionCalls,
    Outcome,
    StdinCases,
    TestProgram,
    Tests,
    UnusableTestsError,
)
from evenkeel.rewards.verifiers.code_tests.outcomes import (
    call_outcomes,
    input_shown,
    program_outcomes,
    shown,
    stdin_outcomes,
)

AT_HAND = ("numpy", "sortedcontainers")
"""Packages that competitive programs import as if they were Python's; a row for one that is absent is unjudged."""
LONGEST_SHOWN = 4000  # characters of the program in the completions table
LEAST_MEMORY_MB, MOST_MEMORY_MB = 16, 1 << 20
LONGEST_ROW = 10  # times wall_seconds: all tests of one row together
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # in what objects say of themselves: another in each process
_FRAME_BYTES = 64 << 20  # hidden tests of some competitions hold tens of megabytes in one input


@dataclass(frozen=True)
class CodeTests(Verifier):
    """Score 1 for a Python program that passes its tests, else 0.

    The program is `code_block` of the completion. The reference is a row's test fields in any of the formats of
    `code_tests.formats`; one without usable tests is unjudged, and so is a row whose tests need what is not
    supported (the reason says what). Programs run in `isolation.sandbox`, their expected results stay outside of it.

    Options:
        score: ``all`` = 1 only if every test passes, and judging ends at the first that does not; ``fraction`` = the
            share of tests that pass, and judging ends at the first that is cut off at a limit: none after it pass.
        comparison: ``livecodebench`` or ``apps``, see `code_tests.comparison`. Tests that are code compare for
            themselves.
        max_tests: of pairs of input and output, judge by at most so many, those with the longest inputs, as PRIME and
            rLLM do. ``None`` = all. Tests that are code are never cut.
        cpu_seconds, wall_seconds, memory_mb: limits of one process: one run on standard input; one call, or several
            that end sooner; all the tests of a row that are code. Processor time comes first; wall time is a backstop
            for programs that sleep, and all the tests of a row together have ten times as much; what is not judged by
            then has not passed. Seconds without a processor do not count; a program that had to wait for one for a
            minute, and so did not end in time, is unjudged.
        isolation: of the sandbox; ``none`` runs programs with your rights.
        slots: completions judged side by side; ``None`` = the processors. Verdicts do not depend on it.
    """

    score: Literal["all", "fraction"] = "all"
    comparison: Comparison = "livecodebench"
    max_tests: int | None = None
    cpu_seconds: float = 6.0
    wall_seconds: float = 30.0
    memory_mb: int = 1024
    isolation: Isolation = "landlock_seccomp"
    slots: int | None = None

    def __post_init__(self) -> None:
        """Check the options that have a range."""
        for name in ("max_tests", "cpu_seconds", "wall_seconds", "memory_mb", "slots"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} = {value}: no program can pass with less than something; write a number > 0")
        if not math.isfinite(self.cpu_seconds) or not math.isfinite(self.wall_seconds):
            raise ValueError(
                f"cpu_seconds = {self.cpu_seconds} and wall_seconds = {self.wall_seconds}: a program that never ends "
                "would hold up the training for ever; write numbers of seconds"
            )
        if self.cpu_seconds > self.wall_seconds:
            raise ValueError(
                f"cpu_seconds = {self.cpu_seconds} is more than wall_seconds = {self.wall_seconds}, which would cut "
                "off every program first; wall time is the backstop: write several times cpu_seconds"
            )
        if not LEAST_MEMORY_MB <= self.memory_mb <= MOST_MEMORY_MB:
            raise ValueError(
                f"memory_mb = {self.memory_mb}: no program can be loaded into less than {LEAST_MEMORY_MB} MB, and no "
                f"machine has {MOST_MEMORY_MB}; write what one program may take, such as 1024"
            )
        for name, known in (("score", ("all", "fraction")), ("comparison", ("livecodebench", "apps"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} = {getattr(self, name)!r}: write one of {', '.join(known)}")

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Judge the program in ``completion`` by the tests in ``reference``."""
        try:
            tests = limited(read_tests(reference), self.max_tests)
        except UnusableTestsError as error:
            return Verdict(None, None, f"unusable tests: {error}")
        code = code_block(completion)
        if code.text is None:
            return Verdict(0.0, None, code.problem)
        try:
            verdict = self._judged_twice(code.text, tests)
        except UnusableTestsError as error:
            verdict = Verdict(None, None, f"unusable tests: {error}")
        except JudgeFailedError as error:
            verdict = Verdict(None, None, str(error))
        if verdict.score != self.full_score and (missing := missing_packages(code.text)):
            reason = f"the program imports {missing}, which tasks count on and which is not installed here: install it"
            verdict = Verdict(None, None, reason)
        return replace(verdict, answer=code.text[:LONGEST_SHOWN])

    def judge_all(self, completions: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge a batch, as many completions at once as there are slots.

        Raises:
            SandboxUnavailableError: the isolation does not hold on this machine. No program was run.
        """
        sandbox = self._sandbox()
        sandbox.run("")  # raises here, once, what would leave every row unjudged
        rows = list(zip(completions, references, strict=True))
        with ThreadPoolExecutor(sandbox.slots) as threads:
            return list(threads.map(lambda row: self._timed(*row), rows))

    def gold_completion(self, reference: Any) -> str | None:
        """The row's own reference solution in a fenced block, or ``None`` where it has none."""
        program = gold_program(reference)
        return None if program is None else f"```python\n{program}\n```"

    def _judged_twice(self, code: str, tests: Tests) -> Verdict:
        """Once more where the sandbox failed: a process that died under many programs is replaced by then."""
        try:
            return self._judged(code, tests)
        except StarvedError:
            raise
        except JudgeFailedError:
            self._sandbox().run("")
            return self._judged(code, tests)

    def _judged(self, code: str, tests: Tests) -> Verdict:
        passed, judged, first_mistake, killed = 0, 0, "", False
        started, waited, longest = time.monotonic(), 0.0, LONGEST_ROW * self.wall_seconds
        for outcome in self._outcomes(code, tests):
            judged += 1
            waited += outcome.waited_seconds
            passed += outcome.passed
            killed = killed or outcome.killed
            if not outcome.passed and not first_mistake:
                mistake = f"test {judged}{_input_of(tests, judged - 1)}: {outcome.reason}"
                first_mistake = _ADDRESS.sub("", mistake)
                if self.score == "all":
                    return Verdict(0.0, None, first_mistake, killed=killed)
            if outcome.killed and not isinstance(tests, TestProgram):
                break
            if judged < _number_of(tests) and waited > longest:
                raise StarvedError(f"the machine is too busy: the programs of the row waited {waited:.0f} s for it")
            if judged < _number_of(tests) and time.monotonic() - started - waited > longest:
                first_mistake = first_mistake or f"the tests of the row took more than {LONGEST_ROW} × wall_seconds"
                killed = True
                break
        total = max(judged, _number_of(tests))
        if passed == total:
            return Verdict(self.full_score, None, f"passes {'its test' if total == 1 else f'all {total} tests'}")
        score = passed / total if self.score == "fraction" else 0.0
        return Verdict(score, None, f"passes {passed} of {total} tests; {first_mistake}", killed=killed)

    def _outcomes(self, code: str, tests: Tests) -> Iterator[Outcome]:
        sandbox = self._sandbox()
        limits = Limits(self.cpu_seconds, self.wall_seconds, self.memory_mb << 20, frame_bytes=_FRAME_BYTES)
        if isinstance(tests, StdinCases):
            return stdin_outcomes(sandbox, code, tests, self.comparison, limits)
        if isinstance(tests, FunctionCalls):
            return call_outcomes(sandbox, code, tests, self.comparison, limits)
        return program_outcomes(sandbox, code, tests, limits)

    def _sandbox(self) -> Sandbox:
        return _shared_sandbox(self.isolation, self.slots)


def missing_packages(code: str, at_hand: Sequence[str] = AT_HAND) -> str:
    """The packages that programs may count on, that ``code`` imports and that are not installed; empty for none."""
    absent = [package for package in at_hand if not is_installed(package)]
    try:
        return ", ".join(sorted(names_of(ast.parse(code)).imported.intersection(absent))) if absent else ""
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def limited(tests: Tests, most: int | None) -> Tests:
    """``tests`` with at most ``most`` cases or calls: those with the longest inputs, in their order."""
    if most is None or isinstance(tests, TestProgram):
        return tests
    if isinstance(tests, StdinCases):
        kept = _longest([len(case.input) for case in tests.cases], most)
        return StdinCases(tuple(tests.cases[number] for number in kept))
    kept = _longest([len(repr(call.arguments)) for call in tests.calls], most)
    return FunctionCalls(tests.entry_point, tuple(tests.calls[number] for number in kept))


def _longest(lengths: Sequence[int], most: int) -> list[int]:
    by_length = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    return sorted(by_length[:most])


def _number_of(tests: Tests) -> int:
    """How many tests there are at least; code says it when it runs."""
    return len(
        tests.calls if isinstance(tests, FunctionCalls) else tests.cases if isinstance(tests, StdinCases) else ()
    )


def _input_of(tests: Tests, number: int) -> str:
    if isinstance(tests, StdinCases):
        return f" (input {shown(tests.cases[number].input)})"
    if isinstance(tests, FunctionCalls):
        return f" ({tests.entry_point}({input_shown(tests.calls[number].arguments)}))"
    return ""


@cache
def _shared_sandbox(isolation: Isolation, slots: int | None) -> Sandbox:
    """One sandbox per isolation in this process, whoever verifies; it ends with the process."""
    installed = [package for package in AT_HAND if is_installed(package)]
    return Sandbox(isolation=isolation, slots=slots, preimported=(*installed, *WHOLE_MODULES))
