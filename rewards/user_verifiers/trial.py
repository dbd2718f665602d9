"""Trial of a user's verifier on a few rows of its own data, before the run."""

from collections.abc import Sequence
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.rewards.user_verifiers.traits import name_of
from evenkeel.rewards.user_verifiers.trl_function import TRLFunction
from evenkeel.rewards.user_verifiers.verifier import TimedOut, UserVerifier
from evenkeel.rewards.verifier import FAILED, Verdict, score_problem

MOST_ROWS = 8
FOREIGN = "<think>Let me see.</think> The wombat files 7f3a turnips. \\boxed{wombat} <answer>wombat</answer>"
"""A completion of no row, with a box and an answer block that match no reference."""
LONG = FOREIGN + " turnip" * 5000


def trial_problem(verifier: UserVerifier, references: Sequence[Any]) -> str:
    """The first problem of ``verifier`` on a few texts; empty if there is none.

    The texts are an empty completion, a foreign one, a long one, and one that contains the reference. Gold answers are
    tried on every row by `evenkeel.rewards.references`.

    Args:
        references: the rows' references, of a `TRLFunction` the rows; at most eight, spread over all, are used.
    """
    of_rows = isinstance(verifier.verifier, TRLFunction)
    read = [each.get("reference") if of_rows else each for each in references]
    rows = range(0, len(references), max(1, -(-len(references) // MOST_ROWS)))
    chosen = [(text, row) for row in rows for text in _texts(read[row])]
    try:
        verdicts = verifier.judge_all([text for text, _ in chosen], [references[row] for _, row in chosen])
    except Refusal as refusal:  # a column is missing
        return str(refusal)
    scored = {row for (_, row), verdict in zip(chosen, verdicts, strict=True) if verdict.score is not None}
    name = name_of(verifier.verifier)
    for (text, row), verdict in zip(chosen, verdicts, strict=True):
        if problem := _problem(verdict, row in scored):
            return f"verifier {name}, tried on {text!r:.60} and reference {row}, {read[row]!r:.80}: {problem}"
    if chosen and not scored and any(verdict.applies for verdict in verdicts):
        return f"verifier {name} scores none of {len(chosen)} trials: {verdicts[0].reason:.200}"
    full = verifier.full_score
    if chosen and verifier.reads_reference and all(each.score is not None and each.score >= full for each in verdicts):
        return f"verifier {name} pays everything. Declare @traits(reads_reference=False) if it scores the form alone."
    return ""


def _texts(reference: Any) -> list[str]:
    holds = f"<think>Let me see.</think> \\boxed{{{reference!s:.2000}}} <answer>{reference!s:.2000}</answer>"
    return ["", FOREIGN, LONG, f"{holds} {reference!s:.2000}"]


def _problem(verdict: Verdict, others_are_scored: bool) -> str:
    if verdict.score is not None:
        return score_problem(verdict.score)
    if isinstance(verdict, TimedOut) or verdict.reason.startswith(FAILED):
        return verdict.reason
    if others_are_scored:  # by such a text a policy could avoid a score of 0
        return f"unscored ({verdict.reason:.200}), and other texts are scored. Return 0 for a bad completion."
    return ""
