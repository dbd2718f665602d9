"""The rows of a batch judged by a user's verifier, whatever it raises."""

from collections.abc import Callable, Sequence
from typing import Any

from rewards.verifier import TokenVerifier, Verdict, Verifier, as_verdict

Row = tuple[Any, ...]
"""Completion, reference and, of a `TokenVerifier`, token ids."""


def judged_rows(verifier: Verifier, rows: Sequence[Row], found: Callable[[int, Verdict], bool]) -> None:
    """Hand each row's verdict to ``found`` at once, until that says no. Raises nothing of the verifier's."""
    one_by_one = type(verifier).judge_all in (Verifier.judge_all, TokenVerifier.judge_all)
    batches = [[row] for row in rows] if one_by_one else [rows]
    number = 0
    for batch in batches:
        for verdict in _verdicts(verifier, batch):
            if not found(number, verdict):
                return
            number += 1


def _verdicts(verifier: Verifier, rows: Sequence[Row]) -> list[Verdict]:
    try:
        verdicts = verifier.judge_all(*(list(column) for column in zip(*rows, strict=True)))
        if len(verdicts) != len(rows):
            raise ValueError(f"judge_all returned {len(verdicts)} verdicts for {len(rows)} completions")
        return [as_verdict(verdict) for verdict in verdicts]
    except BaseException as error:  # noqa: BLE001 — also sys.exit; Ctrl-C reaches the trainer's main thread, not this one
        return [Verdict(None, None, f"the verifier failed: {type(error).__name__}: {error}")] * len(rows)
