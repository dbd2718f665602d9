"""Calls of tools made for all rows of a batch at once. TRL makes one after another: a batch waits for their sum."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Messages = Sequence[Mapping[str, Any]]
Arguments = Mapping[str, Any]
Outcome = Callable[[], Any]
"""Returns what a call returned, or raises what it raised."""


class SideBySide:
    """The calls that a batch's newest turns ask for, made when TRL asks for the first of them.

    The calls of one row keep their order; of different rows nothing is in order, so that tools of different rows must
    not depend on each other. A call that was not foreseen is made when it is asked for.

    Args:
        rows: one `RowEnvironment` a row.
        completions: their messages, to which TRL adds.
        at_once: threads.
    """

    def __init__(self, rows: Sequence[Any], completions: Sequence[Messages], at_once: int) -> None:
        self.rows, self.completions, self.at_once = rows, completions, at_once
        self._made: dict[int, deque[tuple[str, Arguments, Outcome]]] = {id(row): deque() for row in rows}
        self._begun: set[int] = set()

    def outcome(self, row: Any, name: str, arguments: Arguments) -> Any:
        """What the call of a row returns or raises."""
        waiting = self._made[id(row)]
        if not waiting:
            self._make_pending()
        if waiting and waiting[0][:2] == (name, arguments):
            return waiting.popleft()[2]()
        waiting.clear()
        return row._made(name, arguments)

    def _make_pending(self) -> None:
        calls = {index: self._asked_by(row, self.completions[index]) for index, row in enumerate(self.rows)}
        with ThreadPoolExecutor(self.at_once) as threads:
            for place in range(max(map(len, calls.values()), default=0)):
                now = {index: asked[place] for index, asked in calls.items() if place < len(asked)}
                outcomes = self._prepared(now)
                apart = [index for index in now if index not in outcomes]
                made = [threads.submit(_kept, self.rows[index]._made, *now[index]) for index in apart]
                outcomes.update((index, each.result()) for index, each in zip(apart, made, strict=True))
                for index, (name, arguments) in now.items():
                    self._made[id(self.rows[index])].append((name, arguments, outcomes[index]))

    def _asked_by(self, row: Any, messages: Messages) -> list[tuple[str, Arguments]]:
        """The calls of a row's newest message, if it is the policy's and they were not made yet."""
        newest = messages[-1]
        if newest.get("role") != "assistant" or id(newest) in self._begun:
            return []
        self._begun.add(id(newest))  # also of a row that TRL ends because the answer is too long for it
        functions = [call.get("function") or {} for call in newest.get("tool_calls") or ()]
        return [
            (function["name"], function["arguments"])
            for function in functions
            if function.get("name") in row._tools and isinstance(function.get("arguments"), Mapping)
        ]

    def _prepared(self, now: Mapping[int, tuple[str, Arguments]]) -> dict[int, Outcome]:
        """Of the calls whose function takes many at once (`tools.in_worker`), the outcomes by row."""
        found: dict[int, Outcome] = {}
        for name in dict.fromkeys(name for name, _ in now.values()):
            same = [index for index, (each, _) in now.items() if each == name]
            together = getattr(self.rows[same[0]]._functions.get(name), "together", None)
            if together is not None:
                outcomes = together([now[index][1] for index in same])
                for index, outcome in zip(same, outcomes, strict=True):
                    found[index] = _kept(self.rows[index]._made, *now[index], outcome)
        return found


def _kept(function: Callable[..., Any], *arguments: Any) -> Outcome:
    """The outcome of a call, as a function."""
    try:
        result = function(*arguments)
    except Exception as error:  # noqa: BLE001 — raised where TRL asks for the call
        kept = error

        def again() -> Any:
            raise kept

        return again
    return lambda: result
