"""The rows of a batch judged by a user's verifier, whatever it raises."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

from rewards.verifier import TokenVerifier, Verdict, Verifier, as_verdict

Row = tuple[Any, ...]
"""Completion, reference and, of a `TokenVerifier`, token ids."""


def judged_rows(verifier: Verifier, rows: Sequence[Row], found: Callable[[int, Verdict], bool]) -> None:
    """Hand each row's verdict to ``found`` at once, until that says no. Raises nothing of the verifier's.

    Each row is judged on a copy: a reference that is emptied, or token ids that are cut, would be those of the run.
    """
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
        copies = [tuple(map(copy.deepcopy, row)) for row in rows]
        verdicts = verifier.judge_all(*(list(column) for column in zip(*copies, strict=True)))
        if len(verdicts) != len(rows):
            raise ValueError(f"judge_all returned {len(verdicts)} verdicts for {len(rows)} completions")
        return [as_verdict(verdict) for verdict in verdicts]
    except BaseException as error:  # noqa: BLE001 — also sys.exit; Ctrl-C reaches the trainer's main thread, not this one
        return [Verdict(None, None, f"the verifier failed: {type(error).__name__}: {error}")] * len(rows)
