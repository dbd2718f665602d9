"""Outcomes of tests: programs that read standard input, functions that are called, and tests that are code."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from evenkeel.rewards.isolation.sandbox import Limits, Run, Sandbox, Session, SessionOverError
from evenkeel.rewards.verifiers.code_tests.codec import CodecError, decode, encode
from evenkeel.rewards.verifiers.code_tests.comparison import output_mistake, same_value, shown
from evenkeel.rewards.verifiers.code_tests.inside import DRIVER, files
from evenkeel.rewards.verifiers.code_tests.kinds import (
    Call,
    FunctionCalls,
    Outcome,
    StdinCases,
    TestProgram,
    UnusableTestsError,
)

LONGEST_REPLY = 8 << 20
"""Bytes of a reply; longer ones, which would cost the trainer time and memory, are refused."""
_STANDARD_NAMES = Path(__file__).with_name("inside").joinpath("standard_names.py").read_text("utf-8")
# The program runs in the globals of __main__ as if it were the file. It gets its input and nothing else.
_PROGRAM = """{standard_names}
globals().update(standard_names())
sys.setrecursionlimit(RECURSION_LIMIT)
exec(compile({code!r}, "answer.py", "exec", dont_inherit=True), globals())
"""


class ScoringFailedError(RuntimeError):
    """The sandbox failed, or the program had no processor: nothing is known about the answer."""


class AnswerError(Exception):
    """The answer could not be loaded, ended, or was cut off.

    Attributes:
        killed: it was cut off at a limit of time or memory.
    """

    def __init__(self, reason: str, *, killed: bool = False) -> None:
        super().__init__(reason)
        self.killed = killed


class ElsewhereObject:
    """Stands for an object that is not a plain value and stayed in the program's process. It equals nothing."""

    def __repr__(self) -> str:
        return "an object of the program's own"


class AnswerSession:
    """An answer in a process of its own. Its replies are untrusted bytes.

    Args:
        session: `opened` for an answer.
        limits: of its process.
    """

    def __init__(self, session: Session, limits: Limits) -> None:
        self._session = session
        self._limits = limits
        self._asked_seconds = 0.0

    def load(self, code: str, preamble: str = "") -> None:
        """Run the answer's definitions after ``preamble``. Raises ``AnswerError`` if they raise or do not end."""
        outcome, *content = read_frame(self.reply(encode({"preamble": preamble, "answer": code})))
        if outcome != "value":
            raise AnswerError(f"loading the answer raised {raised_text(content)}")

    def reply(self, request: bytes) -> bytes:
        """The process's reply to ``request``.

        Raises:
            AnswerError: the process has ended.
            ScoringFailedError: it was cut off at the limit of wall time, more than half of which the tests took.
        """
        started = time.monotonic()
        try:
            self._session.send(request)
            return self._session.receive()
        except SessionOverError:
            run = self._session.finish()
        finally:
            self._asked_seconds += time.monotonic() - started
        if run.status == "killed_wall" and self._asked_seconds < self._limits.wall_seconds / 2:
            raise ScoringFailedError(f"its tests alone took {self._limits.wall_seconds} s")
        raise AnswerError(f"the program {ended(run)}", killed=run.killed)


def opened(sandbox: Sandbox, side: Literal["answer", "tests"], limits: Limits) -> Session:
    """A process that runs the `files` of that side."""
    session = sandbox.session(DRIVER, limits=limits)
    with contextlib.suppress(SessionOverError):  # the next call raises with how it ended
        session.send(files(side))
    return session


def read_frame(frame: bytes) -> list[object]:
    """A reply as a nonempty list; ``AnswerError`` if it is forged, too long, or not a plain value."""
    if len(frame) > LONGEST_REPLY:
        raise AnswerError(f"the program returned {len(frame)} bytes, more than {LONGEST_REPLY}")
    try:
        content = decode(frame, lambda _: ElsewhereObject())
    except CodecError as error:
        raise AnswerError(f"the program returned what is not a plain value ({error})") from error
    if not isinstance(content, list) or not content:
        raise AnswerError("the program wrote to the channel itself")
    return content


def raised_text(content: list[object]) -> str:
    """``ValueError: text`` from a reply that reports an exception."""
    names, text, *_ = [*content, None, None]
    name = names[0] if isinstance(names, list) and names else "an exception"
    return f"{name}: {text}"[:300]


def ended(run: Run) -> str:
    """How a process ended, in words. Raises ``ScoringFailedError`` if that says nothing about the program."""
    if run.status == "starved":
        raise ScoringFailedError(f"the program waited {run.waited_seconds:.0f} s for a processor")
    if run.status == "failed_to_start":
        raise ScoringFailedError(f"the sandbox failed: {run.problem}")
    words = {
        "killed_cpu": "was cut off at cpu_seconds",
        "killed_wall": "was cut off at its wall time",
        "killed_threads": "was cut off: too many threads",
        "killed_signal": "crashed",
    }
    said = run.stderr.decode(errors="replace").strip().split("\n")[-1][:200]
    return words.get(run.status) or f"ended with exit code {run.exit_code}" + (f" ({said})" if said else "")


def stdin_outcomes(sandbox: Sandbox, code: str, tests: StdinCases, limits: Limits) -> Iterator[Outcome]:
    """The outcome of each case, in order; a case is run when its outcome is requested.

    The output decides, provided that the program ended by itself and without an exception: otherwise raising at once
    would pass if the expected output is empty.
    """
    source = _PROGRAM.format(standard_names=_STANDARD_NAMES, code=code)
    for case in tests.cases:
        enough = max(limits.output_bytes, 2 * len(case.output.encode(errors="replace")) + (1 << 16))
        stdin = case.input.encode(errors="replace")
        run = sandbox.run(source, stdin=stdin, limits=replace(limits, output_bytes=enough))
        if run.status != "exited" or run.exit_code != 0:
            yield Outcome(False, f"the program {ended(run)}", run.killed, run.waited_seconds)
        elif run.truncated:
            yield Outcome(False, f"the program wrote more than {enough} bytes", waited_seconds=run.waited_seconds)
        else:
            mistake = output_mistake(case.output, run.stdout.decode(errors="replace"))
            yield Outcome(not mistake, mistake, waited_seconds=run.waited_seconds)


_ENTRY_POINT = object()


def call_outcomes(sandbox: Sandbox, code: str, tests: FunctionCalls, limits: Limits) -> Iterator[Outcome]:
    """The outcome of each call, in order; a call is made when its outcome is requested.

    Calls share a process as long as it lives. A call that ends it is made again in a fresh process, so that no call
    fails because earlier ones used up the limits.
    """
    next_call = 0
    while next_call < len(tests.cases):
        for outcome in _of_one_process(sandbox, code, tests, next_call, limits):
            next_call += 1
            yield outcome


def _of_one_process(sandbox: Sandbox, code: str, tests: FunctionCalls, first: int, limits: Limits) -> Iterator[Outcome]:
    with opened(sandbox, "answer", limits) as session:
        answer = AnswerSession(session, limits)
        try:
            answer.load(code)
        except AnswerError as error:
            for _ in tests.cases[first:]:
                yield Outcome(False, str(error), error.killed)
            return
        for number, call in enumerate(tests.cases[first:]):
            try:
                frame = answer.reply(_request(tests.entry_point, call))
            except AnswerError as error:
                if number == 0:
                    yield Outcome(False, str(error), error.killed)
                return
            try:
                content = read_frame(frame)
            except AnswerError as error:  # forged, so later frames are not believed either
                yield from [Outcome(False, str(error))] * len(tests.cases[first + number :])
                return
            yield _outcome(content, call)


def _outcome(reply: list[Any], call: Call) -> Outcome:
    kind, *content = reply
    if kind != "value" or not content:
        return Outcome(False, f"it raised {raised_text(content)}")
    if any(same_value(expected, content[0]) for expected in call.accepted):
        return Outcome(True)
    return Outcome(False, f"it returned {shown(content[0])}, not {shown(call.accepted[0])}")


def _request(entry_point: str, call: Call) -> bytes:
    request = ["call", _ENTRY_POINT, list(call.arguments), {}]
    try:
        return encode(request, lambda _: ["name", entry_point])
    except CodecError as error:
        raise UnusableTestsError(f"the arguments of a call cannot be sent: {error}") from error


def program_outcomes(sandbox: Sandbox, code: str, tests: TestProgram, limits: Limits) -> Iterator[Outcome]:
    """The outcome of each test, in order. If the answer's process ends, the remaining tests have failed.

    Raises:
        UnusableTestsError: the tests cannot be run, whatever the answer is.
    """
    # The tests' process waits for the answer's, which may wait for a processor.
    waits = replace(limits, wall_seconds=limits.wall_seconds + limits.longest_seconds)
    with opened(sandbox, "tests", waits) as session, opened(sandbox, "answer", limits) as answers:
        process, answer = _TestsProcess(session), AnswerSession(answers, limits)
        process.prepare(tests)
        try:
            answer.load(code, tests.preamble)
        except AnswerError as error:
            yield Outcome(False, str(error), error.killed)
            return
        yield from process.outcomes(answer)


class _TestsProcess:
    """The process of the tests. It runs none of the answer's code, so its reports are believed."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def prepare(self, tests: TestProgram) -> None:
        """Send the tests. Raises ``UnusableTestsError`` if they cannot be run."""
        try:
            frame = self._next_frame(encode(vars(tests)))
        except AnswerError as error:
            raise UnusableTestsError(str(error)) from error
        _believed(frame)

    def outcomes(self, answer: AnswerSession) -> Iterator[Outcome]:
        """One per test. Requests of a test to the answer are passed on to ``answer``."""
        left, used = 1, False
        to_send: bytes | None = encode(None)
        while True:
            try:
                frame = self._next_frame(to_send)
                if frame[:1] == b"Q":
                    used = True
                    to_send = answer.reply(frame[1:])
                    continue
            except AnswerError as error:
                if not used:  # the tests end without having used the answer
                    raise UnusableTestsError(str(error)) from error
                yield from [Outcome(False, str(error), error.killed)] * left
                return
            to_send = None
            kind, *content = _believed(frame)
            if kind == "done" and not used:
                raise UnusableTestsError("the tests pass without using the answer")
            if kind == "done":
                return
            if kind == "collected":
                left = content[0]
            else:
                left -= 1
                outcome = Outcome(*content)
                if not (outcome.passed or used):
                    raise UnusableTestsError(f"the tests fail by themselves: {outcome.reason}")
                yield outcome

    def _next_frame(self, to_send: bytes | None) -> bytes:
        try:
            if to_send is not None:
                self._session.send(to_send)
            return self._session.receive()
        except SessionOverError:
            run = self._session.finish()
        raise AnswerError(f"the process of the tests {ended(run)}", killed=run.killed)


def _believed(frame: bytes) -> list[Any]:
    """A message of the tests' process to the trainer. Raises ``UnusableTestsError`` if the tests cannot be run."""
    content: list[Any] = decode(frame[1:])
    if content[0] == "unusable":
        raise UnusableTestsError(content[1])
    return content
