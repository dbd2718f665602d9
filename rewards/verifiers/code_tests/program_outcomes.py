"""Tests that are code: run in one process, the answer in another, every call between them handed on here."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rewards.isolation.sandbox import Limits, Sandbox, Session, SessionOverError
from rewards.verifiers.code_tests.answer_session import AnswerError, AnswerSession, ended, last_run, opened, was_cut_off
from rewards.verifiers.code_tests.codec import decode, encode
from rewards.verifiers.code_tests.kinds import Outcome, TestProgram, UnusableTestsError


def program_outcomes(sandbox: Sandbox, code: str, tests: TestProgram, limits: Limits) -> Iterator[Outcome]:
    """What each test finds, in order. Where the answer's process ends, the tests that are left have failed.

    Raises:
        UnusableTestsError: the tests cannot be run, whatever the answer is.
    """
    # The tests' process waits for the answer's, which may wait for a processor.
    waits = replace(limits, wall_seconds=limits.wall_seconds + limits.longest_seconds)
    with opened(sandbox, "tests", waits) as session:
        process = _TestsProcess(session)
        with AnswerSession(sandbox, code, tests.preamble, limits) as answer:
            process.prepare(tests)
            try:
                answer.load()
            except AnswerError as error:
                yield Outcome(False, str(error), error.killed)
                return
            yield from process.outcomes(answer)


class _TestsEndedError(Exception):
    """The process of the tests ended before its tests did; ``killed``: at a limit."""

    def __init__(self, reason: str, *, killed: bool) -> None:
        super().__init__(reason)
        self.killed = killed


class _TestsProcess:
    """The process of the tests. It runs none of the answer's code, so what it reports is believed."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def prepare(self, tests: TestProgram) -> None:
        """Have the tests read. Raises ``UnusableTestsError`` where they cannot be run."""
        specification = {
            "kind": tests.kind,
            "sources": list(tests.sources),
            "entry_point": tests.entry_point,
            "setup": tests.setup,
            "preamble": tests.preamble,
        }
        try:
            frame = self._next_frame(encode(specification))
        except _TestsEndedError as error:
            raise UnusableTestsError(f"the process that reads the tests {error}") from error
        _believed(frame)

    def outcomes(self, answer: AnswerSession) -> Iterator[Outcome]:
        """One per test. The answer has its turn whenever a test uses it."""
        left, used = 1, False
        to_send: bytes | None = encode(None)
        while True:
            try:
                frame = self._next_frame(to_send)
                if frame[:1] == b"Q":
                    used = True
                    to_send = answer.reply(frame[1:])
                    continue
            except (AnswerError, _TestsEndedError) as error:
                if not used:  # nothing of the answer was asked for: the tests end by themselves
                    raise UnusableTestsError(f"the process of the tests {error}") from error
                whose = "" if isinstance(error, AnswerError) else "the tests' process "
                yield from [Outcome(False, f"{whose}{error}", error.killed)] * left
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
        except (SessionOverError, TimeoutError) as error:
            run = last_run(self._session, error)
        raise _TestsEndedError(ended(run), killed=was_cut_off(run))


def _believed(frame: bytes) -> list[Any]:
    """What the process of the tests says to the trainer. Raises ``UnusableTestsError`` where it gives up."""
    content: list[Any] = decode(frame[1:])
    if content[0] == "unusable":
        raise UnusableTestsError(content[1])
    return content
