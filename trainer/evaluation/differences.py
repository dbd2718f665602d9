"""Completions on which two verifiers of a run differ."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

VERDICT_OF = {True: "right", False: "wrong", None: "unscored"}
"""``correct`` of a record → verdict."""


def reward_names(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rewards that scored these completions, in their order; the first decides what is right."""
    keys = dict.fromkeys(key for record in records for key in record)
    return [key.removesuffix("/score") for key in keys if key.endswith("/score")]


def verdict_of(record: Mapping[str, Any], name: str) -> str:
    """One verifier's verdict on a completion: right (its full score, as in accuracy), wrong or unscored."""
    return VERDICT_OF[record.get(f"{name}/right")]


def differences(records: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Pair of verifiers that read answers, not the form alone → completions of both with different verdicts."""
    columns = {column for record in records for column in record}
    reading = [name for name in reward_names(records) if {f"{name}/answer", f"{name}/right"} <= columns]
    return {
        (one, other): [
            record
            for record in records
            if all(record.get(f"{name}/reason") is not None for name in (one, other))  # of the task of both
            and verdict_of(record, one) != verdict_of(record, other)
        ]
        for one, other in combinations(reading, 2)
    }
