"""A user's verifier, tried on a few rows of its own data: a fault that would cost a run is reported before it does."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from evenkeel.rewards.user_verifiers.traits import name_of
from evenkeel.rewards.user_verifiers.verifier import UserVerifier
from evenkeel.rewards.verifier import Verdict, score_problem

MOST_ROWS = 8
FOREIGN = "<think>Let me see.</think> The wombat files 7f3a turnips. \\boxed{wombat} <answer>wombat</answer>"
"""A completion of no row: words, a box and an answer block that no reference holds."""
LONG = FOREIGN + " turnip" * 5000


class _Trial(NamedTuple):
    text: str
    row: int
    reference: Any
    verdict: Verdict

    def description(self) -> str:
        return f"{self.text} and the reference of row {self.row}, {self.reference!r:.80}"


def trial_problem(verifier: UserVerifier, references: Sequence[Any]) -> str:
    """What is wrong with ``verifier`` on a few texts, judged twice; empty where nothing is.

    The texts are an empty completion, a foreign one, a long one, and one that holds what the reference says. Whether
    it pays its own gold answers is asked of every row by `evenkeel.rewards.references`.

    Args:
        references: the rows' references; at most eight of them, spread over all, are used.
    """
    rows = list(range(0, len(references), max(1, -(-len(references) // MOST_ROWS))))
    chosen = [(title, text, row) for row in rows for title, text in _texts(references[row])]
    trials = _scored(verifier, chosen, references)
    name = name_of(verifier.verifier)
    for trial in trials:
        if problem := _problem(trial.verdict):
            return f"verifier {name} was tried on {trial.description()}: {problem}"
    if problem := _unscored(trials) or _pays_everything(verifier, trials):
        return f"verifier {name} {problem}"
    again = _scored(verifier, chosen[::-1], references)
    for trial, second in zip(trials, again[::-1], strict=True):
        if trial.verdict.score != second.verdict.score:
            return (
                f"verifier {name} changes from call to call: tried twice on {trial.description()}, it scored "
                f"{trial.verdict.score} and then {second.verdict.score} ({second.verdict.reason:.200}). Let the score "
                "depend on completion and reference alone, for it cannot be resumed."
            )
    return ""


def _texts(reference: Any) -> list[tuple[str, str]]:
    holds = f"<think>Let me see.</think> \\boxed{{{reference!s:.2000}}} <answer>{reference!s:.2000}</answer>"
    return [
        ("an empty completion", ""),
        ("a foreign completion", FOREIGN),
        ("a long completion", LONG),
        ("a completion that holds the reference", f"{holds} {reference!s:.2000}"),
    ]


def _scored(verifier: UserVerifier, chosen: Sequence[tuple[str, str, int]], references: Sequence[Any]) -> list[_Trial]:
    verdicts = verifier.judge_all([text for _, text, _ in chosen], [references[row] for *_, row in chosen])
    return [
        _Trial(title, row, references[row], verdict) for (title, _, row), verdict in zip(chosen, verdicts, strict=True)
    ]


def _unscored(trials: Sequence[_Trial]) -> str:
    """Why nothing can be learned from what it leaves unjudged: everything, or what a completion can choose to be."""
    if trials and all(trial.verdict.score is None for trial in trials):
        return (
            f"judges nothing: all of {len(trials)} trials are unscored, the first on {trials[0].description()}: "
            f"{trials[0].verdict.reason:.200}. Return None only where a reference cannot be used."
        )
    judged = {trial.row: trial for trial in trials if trial.verdict.score is not None}
    for trial in trials:
        if trial.verdict.score is None and (other := judged.get(trial.row)):
            return (
                f"leaves {trial.description()} unscored ({trial.verdict.reason:.200}), though it scores {other.text} "
                "against the same reference. A policy could escape its 0 by such a text. Return 0 for a bad completion."
            )
    return ""


def _pays_everything(verifier: UserVerifier, trials: Sequence[_Trial]) -> str:
    scores, full = [trial.verdict.score for trial in trials], verifier.full_score
    if not trials or not verifier.reads_reference or any(score is None or score < full for score in scores):
        return ""
    return (
        "pays everything: an empty completion, one about wombats and one of 5,000 turnips all earn its full score of "
        f"{full:g}. Declare @traits(reads_reference=False) on one that judges the form alone."
    )


def _problem(verdict: Verdict) -> str:
    if verdict.score is not None:
        return score_problem(verdict.score)
    return next((f"{verdict.reason}. {remedy}" for mark, remedy in _REMEDIES.items() if mark in verdict.reason), "")


_REMEDIES = {
    "timeout_s = ": "Make it faster, or declare @traits(timeout_s=…).",
    "memory_mb = ": "Have it take less, or declare @traits(memory_mb=…).",
    "its process ended": "Return 0 for a completion that it cannot read.",
    "failed: ": "Return 0 for a bad completion, Verdict(None, None, why) for a reference that cannot be used.",
}
"""By what a reason holds."""
