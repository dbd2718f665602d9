"""Are a dataset's references usable? Asked before training: a bad gold answer is a reward that nobody can earn."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rewards.own_verifiers import OwnVerifier, bounded, trial_problem
from rewards.registry import Refusal
from rewards.verifier import Verdict, Verifier

logger = logging.getLogger(__name__)

MOST_NAMED = 5
OWN_BATCH = 64
"""Rows in a batch of a user's own verifier, whose time is limited by the batch."""


class UnusableReferenceError(Refusal):
    """References that a verifier cannot judge against, or whose own gold answer it refuses."""


class UnusableVerifierError(UnusableReferenceError):
    """A user's own verifier with which a run would be lost, whatever the references."""


def check_references(verifier: Verifier, references: Iterable[Any], source: str) -> None:
    """Judge an empty completion, and the reference's own gold answer where it has one, for every row.

    Args:
        verifier: the one that will judge these rows.
        references: the ``reference`` column.
        source: where the rows come from, for the message.

    Raises:
        UnusableReferenceError: naming the first bad rows and why each is bad.
    """
    references = list(references)
    if problems := unusable_references(verifier, references):
        raise _refusal(problems, source)
    _warn_of_remarks(verifier, dict(enumerate(references)), source)


def unusable_references(verifier: Verifier, references: Iterable[Any]) -> dict[int, str]:
    """Why the verifier cannot use a reference, by its row; empty where it can use them all."""
    references = list(references)
    verifier = bounded(verifier)
    if isinstance(verifier, OwnVerifier):
        return _unusable_of_own(verifier, references)
    return _unusable(verifier, references)


def _unusable_of_own(verifier: OwnVerifier, references: list[Any]) -> dict[int, str]:
    """Batch by batch, each with the verifier's time for one; the first in which it runs out of it is the last."""
    found: dict[int, str] = {}
    for first in range(0, len(references), OWN_BATCH):
        problems = _unusable(verifier, references[first : first + OWN_BATCH])
        found |= {first + place: problem for place, problem in problems.items()}
        if any("timeout_s" in problem for problem in problems.values()):
            break
    return found


def _unusable(verifier: Verifier, references: list[Any]) -> dict[int, str]:
    golds = [_gold_completion(verifier, reference) for reference in references]
    empty = verifier.judge_all([""] * len(references), references)
    with_gold = [row for row, gold in enumerate(golds) if isinstance(gold, str)]
    judged = verifier.judge_all([golds[row] for row in with_gold], [references[row] for row in with_gold])
    by_row = dict(zip(with_gold, judged, strict=True))
    problems = {row: _problem(verifier, golds[row], empty[row], by_row.get(row)) for row in range(len(references))}
    for row, problem in problems.items():
        if not problem and row not in by_row and (why := verifier.unanswerable(references[row])):
            problems[row] = f"nobody can earn it: {why}"
    return {row: problem for row, problem in problems.items() if problem}


def check_rewards(
    verifiers: Mapping[str, Verifier],
    tasks: Mapping[str, str | None],
    references: Sequence[Any],
    row_tasks: Sequence[str | None] | None,
    source: str,
    *,
    max_unusable: int = 0,
) -> list[int]:
    """`check_references` for each of a run's verifiers, by its label, on the rows that it will judge.

    A user's own verifier is tried before that on a few rows, with texts that no verifier should mind or pay.

    Returns the rows that every such verifier can use. Up to ``max_unusable`` others are left out, with a warning that
    names them; more are refused.

    Args:
        tasks: label → the one task whose rows it judges; ``None`` = all rows.
        row_tasks: the rows' tasks; ``None`` = they have none.
    """
    of_rows = row_tasks or [None] * len(references)
    left_out: set[int] = set()
    for label, verifier in verifiers.items():
        judged = [row for row, task in enumerate(of_rows) if tasks[label] in (None, task)]
        of_judged = [references[row] for row in judged]
        for tried in (bounded(verifier), getattr(verifier, "verifier", None)):  # also one that another pays by length
            if isinstance(tried, OwnVerifier) and (problem := trial_problem(tried, of_judged)):
                raise UnusableVerifierError(f"{source}, {label}: {problem}")
        found = unusable_references(verifier, of_judged)
        problems = {judged[place]: problem for place, problem in found.items()}
        left_out |= problems.keys()
        if len(left_out) > max_unusable:
            raise _refusal(problems, f"{source}, {label}")
        if problems:
            logger.warning("%s, %s: left out %s", source, label, _named(problems))
        usable = {row: references[row] for row in judged if row not in problems}
        _warn_of_remarks(verifier, usable, f"{source}, {label}")
    return [row for row in range(len(references)) if row not in left_out]


def _warn_of_remarks(verifier: Verifier, references: Mapping[int, Any], source: str) -> None:
    """One warning that names the first references of which a verifier has something to say."""
    remarks = {
        row: f"{reference!r:.80}: {remark}"
        for row, reference in references.items()
        if (remark := verifier.reference_remark(reference))
    }
    if remarks:
        logger.warning("%s: usable, but to be looked at: %s", source, _named(remarks))


def _refusal(problems: Mapping[int, str], source: str) -> UnusableReferenceError:
    return UnusableReferenceError(
        f"{source}: the verifier cannot use the reference of {_named(problems)}\nNo completion of them could be judged "
        "rightly. Map the right columns in data.…columns.reference, or remove these rows. To train without a few such "
        "rows, write how many in data.max_unusable."
    )


def _named(problems: Mapping[int, str]) -> str:
    named = "".join(f"\n  row {row}: {problem}" for row, problem in list(problems.items())[:MOST_NAMED])
    more = f"\n  … and {len(problems) - MOST_NAMED} more" if len(problems) > MOST_NAMED else ""
    return f"{len(problems)} rows:{named}{more}"


def _gold_completion(verifier: Verifier, reference: Any) -> Any:
    try:
        return verifier.gold_completion(reference)
    except Exception as error:  # noqa: BLE001 — a verifier of the user may raise anything
        return error


def _problem(verifier: Verifier, gold: Any, empty: Verdict, verdict: Verdict | None) -> str:
    if empty.score is None:
        return f"unjudged: {empty.reason}"
    if isinstance(gold, Exception):
        return f"its own answer cannot be written down: {type(gold).__name__}: {gold}"
    if verdict is None:
        return ""
    if verdict.score is None:
        return f"its own answer is unjudged: {verdict.reason}"
    if not verdict.score >= verifier.full_score:
        return f"its own answer scores {verdict.score} instead of {verifier.full_score}: {verdict.reason}"
    return ""
