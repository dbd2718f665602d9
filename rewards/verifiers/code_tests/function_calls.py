"""Functions that are called with values: the values come back, and are compared here."""

from collections.abc import Iterator, Sequence
from typing import Any

from rewards.isolation.sandbox import Limits, Sandbox
from rewards.verifiers.code_tests.answer_session import (
    LONGEST_REPLY,
    AnswerError,
    AnswerSession,
    raised_text,
    read_frame,
)
from rewards.verifiers.code_tests.codec import CodecError, encode
from rewards.verifiers.code_tests.comparison import Comparison, same_value
from rewards.verifiers.code_tests.kinds import Call, FunctionCalls, Outcome, UnusableTestsError

_ENTRY_POINT = object()


def call_outcomes(
    sandbox: Sandbox, code: str, tests: FunctionCalls, comparison: Comparison, limits: Limits
) -> Iterator[Outcome]:
    """What each call finds, in order; a call is made when its outcome is asked for.

    Calls share a process as long as it lives. One that ends it is made again in a fresh process, so that each call has
    the whole of the limits to itself before it fails, and what an earlier call has used up is not held against it.
    """
    next_call = 0
    while next_call < len(tests.calls):
        for outcome in _of_one_process(sandbox, code, tests, next_call, comparison, limits):
            next_call += 1
            yield outcome


def _of_one_process(
    sandbox: Sandbox, code: str, tests: FunctionCalls, first: int, comparison: Comparison, limits: Limits
) -> Iterator[Outcome]:
    with AnswerSession(sandbox, code, "", limits) as answer:
        try:
            answer.load()
        except AnswerError as error:
            for _ in tests.calls[first:]:
                yield Outcome(False, str(error), error.killed)
            return
        for number, call in enumerate(tests.calls[first:]):
            try:
                frame = answer.reply(_request(tests.entry_point, call))
            except AnswerError as error:
                if number == 0:
                    yield Outcome(False, str(error), error.killed)
                return
            try:
                content = read_frame(frame, LONGEST_REPLY + 4 * _longest_accepted(call))
            except AnswerError as error:  # forged, and so is what would come next
                yield from [Outcome(False, str(error))] * len(tests.calls[first + number :])
                return
            yield _outcome(content, call, comparison)


def _outcome(reply: list[Any], call: Call, comparison: Comparison) -> Outcome:
    kind, *content = reply
    if kind != "value" or not content:
        return Outcome(False, f"it raised {raised_text(content)}")
    if any(same_value(expected, content[0], comparison) for expected in call.accepted):
        return Outcome(True)
    return Outcome(False, f"it returned {shown(content[0])}, not {shown(call.accepted[0])}")


def _longest_accepted(call: Call) -> int:
    """Bytes of the longest accepted value in a frame; 0 where it cannot be written, and no answer can return it."""
    try:
        return max(len(encode(value)) for value in call.accepted)
    except CodecError:
        return 0


def _request(entry_point: str, call: Call) -> bytes:
    request = ["call", _ENTRY_POINT, list(call.arguments), dict(call.keywords)]
    try:
        return encode(request, lambda _: ["name", entry_point])
    except CodecError as error:
        raise UnusableTestsError(f"the arguments of a call cannot be sent: {error}") from error


def shown(value: Any, width: int = 80) -> str:
    """``value`` for a person to read."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # more digits than Python writes out
        text = f"a {type(value).__name__} too long to write"
    return text if len(text) <= width else text[:width] + "…"


def input_shown(arguments: Sequence[Any]) -> str:
    """The arguments of a call for a person to read."""
    return ", ".join(shown(argument, 40) for argument in arguments[:5])
