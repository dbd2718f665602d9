"""The trainer's side of the process that runs an answer."""

import contextlib
import time
from typing import Literal

from evenkeel.rewards.isolation.sandbox import Limits, Run, Sandbox, Session, SessionOverError
from evenkeel.rewards.verifiers.code_tests.codec import CodecError, decode, encode
from evenkeel.rewards.verifiers.code_tests.inside import DRIVER, files

LONGEST_REPLY = 8 << 20
"""Bytes of a reply; longer ones, which would cost the trainer time and memory, are refused."""


class ScoringFailedError(RuntimeError):
    """The sandbox failed, not the program: nothing is known about the answer."""


class StarvedError(ScoringFailedError):
    """The program waited too long for a processor: nothing is known about the answer."""


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
            StarvedError: it was cut off at the limit of wall time, more than half of which the tests took.
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
            raise StarvedError(f"its tests alone took {self._limits.wall_seconds} s")
        raise AnswerError(f"the program {ended(run)}", killed=run.killed)


def opened(sandbox: Sandbox, side: Literal["answer", "tests"], limits: Limits) -> Session:
    """A process that runs the `files` of that side."""
    session = sandbox.session(DRIVER, limits=limits)
    with contextlib.suppress(SessionOverError):  # the next call raises with how it ended
        session.send(files(side))
    return session


def read_frame(frame: bytes) -> list[object]:
    """A reply as a nonempty list.

    Raises ``AnswerError`` if it is forged, too long, or not a plain value.
    """
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
        raise StarvedError(f"the program waited {run.waited_seconds:.0f} s for a processor")
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
