"""Tests that are pairs of input and output: programs that read standard input, and functions that are called."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenkeel.rewards.verifiers.code_tests.formats.packed import sequence, unpacked
from evenkeel.rewards.verifiers.code_tests.kinds import Call, FunctionCalls, StdinCase, StdinCases, UnusableTestsError

_KINDS = {"stdin": "stdin", "stdin_stdout": "stdin", "functional": "function", "function_call": "function", "": ""}


@dataclass(frozen=True)
class Pair:
    """One test as published.

    Attributes:
        input: a text, lines, or a list of arguments.
        output: a text, lines, or a value.
        kind: ``stdin`` or ``function``; empty = ``function`` if a function is named, else ``stdin``.
        name: of the function; empty = not given by the test.
        wrapped: the expected value may be wrapped in a list of one; the format does not say whether it is.
    """

    input: Any
    output: Any
    kind: str = ""
    name: str = ""
    wrapped: bool = False


def pairs_of_columns(columns: Mapping[str, Any]) -> list[Pair]:
    """APPS, TACO: ``{"inputs": […], "outputs": […], "fn_name"?}``; CodeContests: ``{"input": […], "output": […]}``."""
    inputs, outputs = (sequence(columns.get(f"{side}s", columns.get(side))) for side in ("input", "output"))
    if inputs is None or outputs is None or len(inputs) != len(outputs):
        raise UnusableTestsError("inputs and outputs are not as many as each other")
    name = columns.get("fn_name") or ""
    return [Pair(given, wanted, name=name, wrapped=bool(name)) for given, wanted in zip(inputs, outputs, strict=True)]


def pairs_of_list(tests: Sequence[Any]) -> list[Pair]:
    """LiveCodeBench, DeepCoder, PrimeIntellect: a list of ``{"input", "output", "testtype" | "type", …}``."""
    pairs = []
    for test in tests:
        stated = test.get("testtype") or test.get("type") or ""
        wrapped = stated == "function_call"
        pairs.append(Pair(test["input"], test["output"], _KINDS[stated], function_name(test), wrapped))
    return pairs


def cases_of_pairs(pairs: Sequence[Pair], name: str) -> StdinCases | FunctionCalls:
    """``pairs`` as one kind of tests; ``name`` is the function if the pairs do not name one.

    Raises:
        UnusableTestsError: there are none, they mix kinds or functions, or a program that does nothing would pass.
    """
    if not pairs:
        raise UnusableTestsError("no tests")
    names = {pair.name for pair in pairs if pair.name} or ({name} if name else set())
    kinds = {pair.kind or ("function" if names else "stdin") for pair in pairs}
    if len(kinds) > 1:
        raise UnusableTestsError("some tests are for standard input, some for a function")
    if kinds == {"stdin"}:
        cases = tuple(StdinCase(_lines(pair.input), _lines(pair.output)) for pair in pairs)
        if not any(case.output.strip() for case in cases):
            raise UnusableTestsError("every expected output is empty")
        return StdinCases(cases)
    if len(names) != 1:
        raise UnusableTestsError(f"its calls name {len(names)} functions, not one, in fn_name or func_name")
    return FunctionCalls(names.pop(), tuple(map(_call, pairs)))


def function_name(row: Mapping[str, Any]) -> str:
    """The function that a row or one of its tests names; empty if it names none."""
    metadata = row.get("metadata")
    if isinstance(metadata, str) and metadata.lstrip().startswith("{"):
        metadata = unpacked(metadata, "metadata")
    named = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    found = row.get("fn_name") or named or ""
    return found if isinstance(found, str) else ""


def _lines(value: Any) -> str:
    lines = sequence(value)
    return "\n".join(map(str, lines)) if lines is not None else str(value)


def _call(pair: Pair) -> Call:
    given, wanted = pair.input, pair.output
    if isinstance(given, str):
        given = [json.loads(line) for line in given.split("\n") if line.strip()]
        wanted = json.loads(wanted) if isinstance(wanted, str) else wanted
    arguments = sequence(given)
    if arguments is None:
        raise UnusableTestsError(f"{given!r:.60} is no list of arguments")
    accepted = [wanted]
    if pair.wrapped:
        arguments = [_integer_keys(argument) for argument in arguments]
        if isinstance(wanted, list) and len(wanted) == 1:
            accepted.append(wanted[0])
        accepted += [keyed for value in list(accepted) if (keyed := _integer_keys(value)) is not value]
    return Call(tuple(arguments), tuple(accepted))


def _integer_keys(value: Any) -> Any:
    """A dict with digit keys gets integer keys, which the published functions use and JSON lacks; others unchanged."""
    if not isinstance(value, dict) or not value:
        return value
    try:
        return {int(key): item for key, item in value.items()}
    except (ValueError, TypeError):
        return value
