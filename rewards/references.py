"""Are a dataset's references usable? Asked before training: a bad gold answer is a reward that nobody can earn."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.rewards.user_verifiers import UserVerifier, bounded, trial_problem
from evenkeel.rewards.verifier import Verdict, Verifier, score_problem
from evenkeel.rewards.verifiers.environment import EnvironmentReward

logger = logging.getLogger(__name__)

MOST_NAMED = 5
OWN_BATCH = 64
"""Rows in a batch of a user's own verifier, whose time is limited by the batch."""


def unusable_references(verifier: Verifier, references: Iterable[Any]) -> dict[int, str]:
    """Why the verifier cannot use a reference, by its row; empty where it can use them all."""
    references = list(references)
    verifier = bounded(verifier)
    if isinstance(verifier, UserVerifier):
        return _unusable_of_users(verifier, references)
    return _unusable(verifier, references)


def _unusable_of_users(verifier: UserVerifier, references: list[Any]) -> dict[int, str]:
    """Batch by batch, each with the verifier's time for one; the first in which it runs out of it is the last."""
    found: dict[int, str] = {}
    for first in range(0, len(references), OWN_BATCH):
        problems = _unusable(verifier, references[first : first + OWN_BATCH])
        found |= {first + place: problem for place, problem in problems.items()}
        if any("timeout_s" in problem for problem in problems.values()):
            break
    return found


def _unusable(verifier: Verifier, references: list[Any]) -> dict[int, str]:
    golds = [_written(verifier.gold_completion, reference) for reference in references]
    wrongs = [_written(verifier.wrong_completion, reference) for reference in references]
    empty = verifier.judge_all([""] * len(references), references)
    of_golds, of_wrongs = (_judged(verifier, completions, references) for completions in (golds, wrongs))
    problems = {row: _problem(verifier, golds[row], empty[row], of_golds.get(row)) for row in range(len(references))}
    for row, problem in problems.items():
        if not problem and row not in of_golds and (why := verifier.unanswerable(references[row])):
            problems[row] = f"nobody can earn it: {why}"
        elif not problem and row in of_wrongs:
            problems[row] = _problem_with_wrong(verifier, wrongs[row], of_wrongs[row])
    return {row: problem for row, problem in problems.items() if problem}


def _judged(verifier: Verifier, completions: list[Any], references: list[Any]) -> dict[int, Verdict]:
    rows = [row for row, completion in enumerate(completions) if isinstance(completion, str)]
    judged = verifier.judge_all([completions[row] for row in rows], [references[row] for row in rows])
    return dict(zip(rows, judged, strict=True))


def check_rewards(
    verifiers: Mapping[str, Verifier],
    tasks: Mapping[str, str | None],
    references: Sequence[Any],
    row_tasks: Sequence[str | None] | None,
    source: str,
    *,
    max_unusable: int = 0,
    only_measure: Collection[str] = (),
) -> list[int]:
    """Score, with each of a run's verifiers, for every row that it will score an empty completion, and the gold answer
    and a plain wrong one where they are known.

    A user's own verifier is tried before that on a few rows, with texts that no verifier should mind or pay.

    Returns the rows that every such verifier can use. Up to ``max_unusable`` others are left out, with a warning that
    names them; more are refused.

    Args:
        tasks: label → the one task whose rows it judges; ``None`` = all rows.
        row_tasks: the rows' tasks; ``None`` = they have none.
        only_measure: labels of those with weight 0: what they cannot use is named, and trained by the others.
    """
    of_rows = row_tasks or [None] * len(references)
    left_out: set[int] = set()
    for label, verifier in verifiers.items():
        if isinstance(verifier, EnvironmentReward):
            continue
        judged = [row for row, task in enumerate(of_rows) if tasks[label] in (None, task)]
        mine = [references[row] for row in judged]
        for tried in (bounded(verifier), getattr(verifier, "verifier", None)):  # also one that another pays by length
            if isinstance(tried, UserVerifier) and (problem := trial_problem(tried, mine)):
                raise Refusal(f"{source}, {label}: {problem}", code="unusable-verifier")
        problems = {judged[place]: problem for place, problem in unusable_references(verifier, mine).items()}
        usable = [row for row in judged if row not in problems]
        said = zip(usable, verifier.reference_remarks([references[row] for row in usable]), strict=True)
        remarks = {row: f"{references[row]!r:.80}: {remark}" for row, remark in said if remark}
        if label not in only_measure:
            left_out |= problems.keys()
        if len(left_out) > max_unusable:
            raise _refusal(problems, f"{source}, {label}")
        if problems:
            what = "not measured" if label in only_measure else "left out"
            logger.warning("%s, %s: %s %s", source, label, what, _named(problems))
        if remarks:
            logger.warning("%s, %s: usable, but to be looked at: %s", source, label, _named(remarks))
    return [row for row in range(len(references)) if row not in left_out]


def _refusal(problems: Mapping[int, str], source: str) -> Refusal:
    return Refusal(
        f"{source}: the verifier cannot use the reference of {_named(problems)}\nMap the right columns in "
        "data.…columns.reference, or write in data.max_unusable how many rows may be left out.",
        code="unusable-reference",
    )


def _named(problems: Mapping[int, str]) -> str:
    named = "".join(f"\n  row {row}: {problem}" for row, problem in list(problems.items())[:MOST_NAMED])
    more = f"\n  … and {len(problems) - MOST_NAMED} more" if len(problems) > MOST_NAMED else ""
    return f"{len(problems)} rows:{named}{more}"


def _written(completion: Callable[[Any], str | None], reference: Any) -> Any:
    try:
        return completion(reference)
    except Exception as error:  # noqa: BLE001 — a verifier of the user may raise anything
        return error


def _problem(verifier: Verifier, gold: Any, empty: Verdict, verdict: Verdict | None) -> str:
    if empty.score is None:
        return f"unscored: {empty.reason}"
    if isinstance(gold, Exception):
        return f"its own answer cannot be written down: {type(gold).__name__}: {gold}"
    if verdict is None:
        return ""
    if verdict.score is None:
        return f"its own answer is unscored: {verdict.reason}"
    if not verdict.score >= verifier.full_score:
        return f"its own answer scores {verdict.score} instead of {verifier.full_score}: {verdict.reason}"
    problem = score_problem(verdict.score)
    return f"its own answer: {problem}" if problem else ""


def _problem_with_wrong(verifier: Verifier, wrong: str, verdict: Verdict) -> str:
    if verdict.score is None:
        return f"a plain wrong answer, {wrong!r:.80}, is unscored: {verdict.reason}"
    if verdict.score >= verifier.full_score:
        return f"a plain wrong answer, {wrong!r:.80}, scores {verdict.score} too: {verdict.reason}"
    return ""
