"""The verifier of programs by tests."""

import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from evenkeel.rewards.extraction import code_block
from evenkeel.rewards.isolation.sandbox import Isolation, Limits, Sandbox, shared_sandbox
from evenkeel.rewards.verifier import Seconds, Verdict, Verifier
from evenkeel.rewards.verifiers.code_tests.formats import read_tests
from evenkeel.rewards.verifiers.code_tests.formats.gold import gold_program
from evenkeel.rewards.verifiers.code_tests.inside.standard_names import WHOLE_MODULES
from evenkeel.rewards.verifiers.code_tests.kinds import (
    FunctionCalls,
    Outcome,
    StdinCase,
    StdinCases,
    TestProgram,
    Tests,
    UnusableTestsError,
)
from evenkeel.rewards.verifiers.code_tests.outcomes import (
    ScoringFailedError,
    call_outcomes,
    program_outcomes,
    stdin_outcomes,
)

AT_HAND = ("numpy", "sortedcontainers")
"""Packages that competitive programs import, preimported in the sandbox."""
# Characters of the program in the completions table.
LONGEST_SHOWN = 4000
# Wall time of a process, in its processor time: for programs that sleep.
WALL_FACTOR = 5
# Times the wall time of a process: all tests of one row together.
LONGEST_ROW = 10
# In the text of objects; differs between processes.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Hidden tests of some competitions hold tens of megabytes in one input.
_FRAME_BYTES = 64 << 20


@dataclass(frozen=True)
class CodeTests(Verifier):
    """Score 1 for a Python program that passes its tests, else 0.

    The program is `code_block` of the completion. The reference is a row's test fields in any of the formats of
    `code_tests.formats`; without usable tests the row is unscored, with the reason. Programs run in
    `isolation.sandbox`; their expected results stay outside of it.

    Options:
        score: ``all`` = 1 only if every test passes; ``fraction`` = the share of tests that pass; after one that is cut
            off at a limit the others count as failed.
        max_tests: keep at most this many pairs of input and output, those with the longest inputs, as PRIME and rLLM
            do. ``None`` = all. Tests that are code are all kept.
        cpu_seconds, memory_mb: limits of one process: one run on standard input; one call, or several that end sooner;
            all the tests of a row that are code. Wall time, five times as much, is a backstop for programs that sleep;
            all the tests of a row have ten times that. Seconds without a processor do not count; a program that waited
            a minute for one is unscored.
        isolation: of the sandbox; ``none`` runs programs with your rights.
    """

    score: Literal["all", "fraction"] = "all"
    max_tests: Annotated[int, Field(ge=1)] | None = None
    cpu_seconds: Seconds = 6.0
    memory_mb: Annotated[int, Field(ge=16)] = 1024
    isolation: Isolation = "landlock_seccomp"

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Score the program in ``completion`` by the tests in ``reference``."""
        code = code_block(completion)
        try:
            tests = limited(read_tests(reference), self.max_tests)
            if code.text is None:
                return Verdict(0.0, None, code.problem)
            verdict = self._scored(code.text, tests)
        except UnusableTestsError as error:
            verdict = Verdict(None, None, f"unusable tests: {error}")
        except ScoringFailedError as error:
            verdict = Verdict(None, None, str(error))
        return replace(verdict, answer=code.text and code.text[:LONGEST_SHOWN])

    def judge_all(self, completions: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Score a batch, as many completions in parallel as the sandbox has slots.

        Raises:
            SandboxUnavailableError: the isolation does not hold on this machine. No program was run.
        """
        sandbox = self._sandbox()
        # Raises here, once, an error that would leave every row unscored.
        sandbox.run("")
        rows = list(zip(completions, references, strict=True))
        with ThreadPoolExecutor(sandbox.slots) as threads:
            return list(threads.map(lambda row: self._timed(*row), rows))

    def gold_completion(self, reference: Any) -> str | None:
        """The row's reference solution in a fenced block; ``None`` if it has none."""
        program = gold_program(reference)
        return None if program is None else f"```python\n{program}\n```"

    def _scored(self, code: str, tests: Tests) -> Verdict:
        passed, scored, first_mistake, killed = 0, 0, "", False
        started, waited, longest = time.monotonic(), 0.0, LONGEST_ROW * WALL_FACTOR * self.cpu_seconds
        for outcome in self._outcomes(code, tests):
            scored += 1
            waited += outcome.waited_seconds
            passed += outcome.passed
            killed = killed or outcome.killed
            if not outcome.passed and not first_mistake:
                first_mistake = _ADDRESS.sub("", f"test {scored}: {outcome.reason}")
                if self.score == "all":
                    return Verdict(0.0, None, first_mistake, killed=killed)
            if scored >= _number_of(tests):
                continue
            if outcome.killed:
                break
            if waited > longest:
                raise ScoringFailedError(f"the programs of the row waited {waited:.0f} s for a processor")
            if time.monotonic() - started - waited > longest:
                first_mistake = first_mistake or f"the tests of the row took more than {longest:g} s"
                killed = True
                break
        total = max(scored, _number_of(tests))
        if passed == total:
            return Verdict(self.full_score, None, f"passes all {total} tests")
        score = passed / total if self.score == "fraction" else 0.0
        return Verdict(score, None, f"passes {passed} of {total} tests; {first_mistake}", killed=killed)

    def _outcomes(self, code: str, tests: Tests) -> Iterator[Outcome]:
        sandbox = self._sandbox()
        wall_seconds = WALL_FACTOR * self.cpu_seconds
        limits = Limits(self.cpu_seconds, wall_seconds, self.memory_mb << 20, frame_bytes=_FRAME_BYTES)
        if isinstance(tests, StdinCases):
            return stdin_outcomes(sandbox, code, tests, limits)
        if isinstance(tests, FunctionCalls):
            return call_outcomes(sandbox, code, tests, limits)
        return program_outcomes(sandbox, code, tests, limits)

    def _sandbox(self) -> Sandbox:
        return shared_sandbox(self.isolation, (*AT_HAND, *WHOLE_MODULES))


def limited(tests: Tests, most: int | None) -> Tests:
    """``tests`` with at most ``most`` cases or calls: those with the longest inputs, in their order."""
    if most is None or isinstance(tests, TestProgram):
        return tests
    lengths = [len(case.input if isinstance(case, StdinCase) else repr(case.arguments)) for case in tests.cases]
    longest = sorted(range(len(lengths)), key=lambda number: -lengths[number])[:most]
    kept: Any = tuple(tests.cases[number] for number in sorted(longest))
    return replace(tests, cases=kept)


def _number_of(tests: Tests) -> int:
    """Number of tests; 0 for tests that are code, which is known only when they run."""
    return 0 if isinstance(tests, TestProgram) else len(tests.cases)
