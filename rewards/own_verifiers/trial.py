"""A user's verifier, tried on a few rows of its own data: what would cost a run is said before it costs one."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rewards.own_verifiers.bounded import OwnVerifier
from rewards.own_verifiers.traits import name_of
from rewards.verifier import Verdict

MOST_ROWS = 8
FOREIGN = "<think>Let me see.</think> The wombat files 7f3a turnips. \\boxed{wombat} <answer>wombat</answer>"
"""A completion of no row: words, a box and an answer block that no reference holds."""
LONG = FOREIGN + " turnip" * 5000


class _Trial(NamedTuple):
    text: str
    row: int
    reference: Any
    verdict: Verdict


def trial_problem(verifier: OwnVerifier, references: Sequence[Any]) -> str:
    """What is wrong with ``verifier`` on an empty completion, a foreign one and a long one; empty where nothing is.

    Whether it pays its own gold answers is asked of every row by `rewards.references`.

    Args:
        references: the rows' references; at most eight of them, spread over all, are used.
    """
    name = name_of(verifier.verifier)
    trials = list(_trials(verifier, references))
    for trial in trials:
        if problem := _problem(trial.verdict):
            tried = f"{trial.text} and the reference of row {trial.row}, {trial.reference!r:.80}"
            return f"verifier {name} was tried on {tried}: {problem}"
    scores = [trial.verdict.score for trial in trials]
    full = verifier.full_score
    if trials and verifier.reads_reference and all(score is not None and score >= full for score in scores):
        return (
            f"verifier {name} pays everything: an empty completion, one about wombats and one of 5,000 turnips "
            f"all earn its full score of {full:g}, so nothing can be learned from it. Compare the completion with the "
            "reference; declare @traits(reads_reference=False) on one that judges something else."
        )
    return ""


def _trials(verifier: OwnVerifier, references: Sequence[Any]) -> Iterator[_Trial]:
    rows = list(range(0, len(references), max(1, -(-len(references) // MOST_ROWS))))
    texts = {"an empty completion": "", "a foreign completion": FOREIGN, "a long completion": LONG}
    chosen = [(title, text, row) for row in rows for title, text in texts.items()]
    verdicts = verifier.judge_all([text for _, text, _ in chosen], [references[row] for *_, row in chosen])
    for (title, _, row), verdict in zip(chosen, verdicts, strict=True):
        yield _Trial(title, row, references[row], verdict)


def _problem(verdict: Verdict) -> str:
    if verdict.score is not None:
        if math.isfinite(verdict.score):
            return ""
        return (
            f"its score is {verdict.score}, which is no reward. Return a finite number, or None where it cannot judge."
        )
    reason = verdict.reason
    if "signal only works in main thread" in reason:
        return f"{reason}. It needs the main thread of a process: declare @traits(picklable=True) and it gets one."
    if verdict.killed:
        return f"{reason}. Make it faster, declare @traits(timeout_s=…), or find out what it waits for."
    if "failed: " in reason:
        return (
            f"{reason}. Return Verdict(None, None, why) where a reference cannot be judged; a bad completion scores 0."
        )
    return ""
