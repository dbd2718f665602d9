"""Trial of verifiers and references before training: a bad gold answer is a reward that nobody can earn."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.rewards.user_verifiers import TimedOut, TRLFunction, UserVerifier, bounded, users_part
from evenkeel.rewards.user_verifiers.traits import name_of
from evenkeel.rewards.verifier import FAILED, NOT_APPLICABLE, Verdict, Verifier, score_problem
from evenkeel.rewards.verifiers.environment import EnvironmentReward

logger = logging.getLogger(__name__)

MOST_NAMED = 5
OWN_BATCH = 64
"""Rows in a batch of a user's verifier, whose time limit is per batch."""
MOST_ROWS = 8
FOREIGN = "<think>Let me see.</think> The wombat files 7f3a turnips. \\boxed{wombat} <answer>wombat</answer>"
"""A completion of no row, with a box and an answer block that match no reference."""
LONG = FOREIGN + " turnip" * 5000


def unusable_references(verifier: Verifier, references: Iterable[Any]) -> dict[int, str]:
    """Row → the reason why the verifier cannot use its reference; rows that it can use are absent.

    A user's verifier gets batches of 64 rows, each with its own time limit. After one that times out no other
    row is tried, and none of them counts as usable.
    """
    references, verifier, own = list(references), bounded(verifier), users_part(verifier)
    size = OWN_BATCH if own is not None else max(len(references), 1)
    found: dict[int, str] = {}
    for first in range(0, len(references), size):
        problems, is_late = _problems(verifier, references[first : first + size])
        found |= {first + row: problem for row, problem in enumerate(problems) if problem}
        if is_late:
            rest = range(first + size, len(references))
            return found | dict.fromkeys(rest, "not tried, because earlier ones took too long")
    return found


def _problems(verifier: Verifier, references: list[Any]) -> tuple[list[str], bool]:
    """Each row's problem or "", and whether a user's verifier timed out."""
    golds = [_written(verifier.gold_completion, reference) for reference in references]
    wrongs = [_written(verifier.wrong_completion, reference) for reference in references]
    empty = verifier.judge_all([""] * len(references), references)
    of_golds, of_wrongs = (_verdicts(verifier, completions, references) for completions in (golds, wrongs))
    problems = []
    for row, reference in enumerate(references):
        problem = _problem(verifier, (golds[row], wrongs[row]), empty[row], of_golds.get(row))
        if not problem and row not in of_golds and (why := _written(verifier.unanswerable, reference)):
            problem = f"nobody can earn it: {why}"
        elif not problem and (wrong := of_wrongs.get(row)) and (wrong.score is None or _is_full(verifier, wrong)):
            problem = f"a plain wrong answer, {wrongs[row]!r:.80}, scores {wrong.score}: {wrong.reason}"
        problems.append(problem)
    verdicts = (*empty, *of_golds.values(), *of_wrongs.values())
    return problems, any(isinstance(verdict, TimedOut) for verdict in verdicts)


def _verdicts(verifier: Verifier, completions: list[Any], references: list[Any]) -> dict[int, Verdict]:
    rows = [row for row, completion in enumerate(completions) if isinstance(completion, str)]
    verdicts = verifier.judge_all([completions[row] for row in rows], [references[row] for row in rows])
    return dict(zip(rows, verdicts, strict=True))


def check_rewards(
    verifiers: Mapping[str, Verifier],
    tasks: Mapping[str, str | None],
    references: Sequence[Any],
    row_tasks: Sequence[str | None] | None,
    source: str,
    *,
    rows: Any = (),
    max_unusable: int = 0,
    only_measure: Collection[str] = (),
) -> list[int]:
    """Try each of a run's verifiers on its rows: an empty completion, and, if known, the gold answer and a wrong one.

    A user's verifier is tried first on a few rows, with texts at which no verifier should fail.

    Returns the rows that all their verifiers can use. Up to ``max_unusable`` others are left out, with a warning that
    names them; more are refused.

    Args:
        tasks: label → the one task whose rows it scores; ``None`` = all rows.
        row_tasks: the rows' tasks; ``None`` = they have none.
        rows: with all columns, for a `TRLFunction`, which may leave a row by ``None`` to other rewards that pay it.
        only_measure: labels of those with weight 0: rows that they cannot use are named, and trained on the others.
    """
    of_rows = row_tasks or [None] * len(references)
    left_out: set[int] = set()
    paying = [task for label, task in tasks.items() if label not in only_measure]
    for label, verifier in verifiers.items():
        if isinstance(verifier, EnvironmentReward):
            continue
        own = [row for row, task in enumerate(of_rows) if tasks[label] in (None, task)]
        mine = [rows[row] if isinstance(verifier, TRLFunction) else references[row] for row in own]
        if (users := users_part(verifier)) is not None and (problem := trial_problem(users, mine)):
            raise Refusal(f"{source}, {label}: {problem}", code="unusable-verifier")
        problems = {own[place]: problem for place, problem in unusable_references(verifier, mine).items()}
        for row in [row for row, problem in problems.items() if NOT_APPLICABLE in problem]:
            if sum(task in (None, of_rows[row]) for task in paying) > 1:
                del problems[row]
        left_out |= set() if label in only_measure else problems.keys()
        if len(left_out) > max_unusable:
            raise Refusal(
                f"{source}, {label}: unusable references in {_named(problems)}\nMap data.…columns.reference, or raise "
                "data.max_unusable.",
                code="unusable-reference",
            )
        if problems:
            what = "not measured" if label in only_measure else "left out"
            logger.warning("%s, %s: %s %s", source, label, what, _named(problems))
    return [row for row in range(len(references)) if row not in left_out]


def _named(problems: Mapping[int, str]) -> str:
    named = "".join(f"\n  row {row}: {problem}" for row, problem in list(problems.items())[:MOST_NAMED])
    more = f"\n  … and {len(problems) - MOST_NAMED} more" if len(problems) > MOST_NAMED else ""
    return f"{len(problems)} rows:{named}{more}"


def _written(completion: Callable[[Any], str | None], reference: Any) -> Any:
    try:
        return completion(reference)
    except Exception as error:  # noqa: BLE001 — a verifier of the user may raise anything
        return error


def _is_full(verifier: Verifier, verdict: Verdict) -> bool:
    return verdict.score is not None and verdict.score >= verifier.full_score


def _problem(verifier: Verifier, answers: Sequence[Any], empty: Verdict, verdict: Verdict | None) -> str:
    if empty.score is None:
        return f"unscored: {empty.reason}"
    for answer in answers:
        if isinstance(answer, Exception):
            return f"its right or wrong answer cannot be written down: {type(answer).__name__}: {answer}"
    if verdict is None:
        return ""
    if not _is_full(verifier, verdict):
        return f"its own answer scores {verdict.score} instead of {verifier.full_score}: {verdict.reason}"
    return score_problem(verdict.score or 0.0)


def trial_problem(verifier: UserVerifier, references: Sequence[Any]) -> str:
    """The first problem of ``verifier`` on a few texts; empty if there is none.

    The texts are an empty completion, a foreign one, a long one, and one that contains the reference.

    Args:
        references: the rows' references, of a `TRLFunction` the rows; at most eight, spread over all, are used.
    """
    of_rows = isinstance(verifier.verifier, TRLFunction)
    read = [each.get("reference") if of_rows else each for each in references]
    rows = range(0, len(references), max(1, -(-len(references) // MOST_ROWS)))
    chosen = []
    for row in rows:
        gold = f"{read[row]!s:.2000}"
        holds = f"<think>Let me see.</think> \\boxed{{{gold}}} <answer>{gold}</answer> {gold}"
        chosen += [(text, row) for text in ("", FOREIGN, LONG, holds)]
    try:
        verdicts = verifier.judge_all([text for text, _ in chosen], [references[row] for _, row in chosen])
    except Refusal as refusal:  # a column is missing
        return str(refusal)
    scored = {row for (_, row), verdict in zip(chosen, verdicts, strict=True) if verdict.score is not None}
    name = name_of(verifier.verifier)
    for (text, row), verdict in zip(chosen, verdicts, strict=True):
        if problem := _trial_problem(verdict, row in scored):
            return f"verifier {name}, tried on {text!r:.60} and reference {row}, {read[row]!r:.80}: {problem}"
    if chosen and not scored and any(verdict.applies for verdict in verdicts):
        return f"verifier {name} scores none of {len(chosen)} trials: {verdicts[0].reason:.200}"
    if chosen and verifier.reads_reference and all(_is_full(verifier, verdict) for verdict in verdicts):
        return f"verifier {name} pays everything. Declare @traits(reads_reference=False) if it scores the form alone."
    return ""


def _trial_problem(verdict: Verdict, others_are_scored: bool) -> str:
    if verdict.score is not None:
        return score_problem(verdict.score)
    if isinstance(verdict, TimedOut) or verdict.reason.startswith(FAILED):
        return verdict.reason
    if others_are_scored:  # by such a text a policy could avoid a score of 0
        return f"unscored ({verdict.reason:.200}), and other texts are scored. Return 0 for a bad completion."
    return ""
