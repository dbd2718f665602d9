"""Are a dataset's references usable? Asked before training: a bad gold answer is a reward that nobody can earn."""

from collections.abc import Iterable
from typing import Any

from rewards.verifier import Verifier

MOST_NAMED = 5


class UnusableReferenceError(ValueError):
    """References that a verifier cannot judge against, or whose own gold answer it refuses."""


def check_references(verifier: Verifier, references: Iterable[Any], source: str) -> None:
    """Judge an empty completion, and the reference's own gold answer where it has one, for every row.

    Args:
        verifier: the one that will judge these rows.
        references: the ``reference`` column.
        source: where the rows come from, for the message.

    Raises:
        UnusableReferenceError: naming the first bad rows and why each is bad.
    """
    problems = {row: problem for row, ref in enumerate(references) if (problem := _problem(verifier, ref))}
    if not problems:
        return
    named = "\n".join(f"  row {row}: {problem}" for row, problem in list(problems.items())[:MOST_NAMED])
    more = f"\n  … and {len(problems) - MOST_NAMED} more" if len(problems) > MOST_NAMED else ""
    raise UnusableReferenceError(
        f"{source}: the verifier cannot use the reference of {len(problems)} rows, so no completion of them could be "
        f"judged rightly:\n{named}{more}\nMap the right columns in data.…columns.reference, or remove these rows."
    )


def _problem(verifier: Verifier, reference: Any) -> str:
    try:
        empty = verifier("", reference)
        if empty.score is None:
            return f"unjudged: {empty.reason}"
        gold = verifier.gold_completion(reference)
        verdict = None if gold is None else verifier(gold, reference)
    except Exception as error:  # noqa: BLE001 — a verifier of the user may raise anything
        return f"the verifier raised {type(error).__name__}: {error}"
    if verdict is not None and verdict.score != verifier.full_score:
        return f"its own answer scores {verdict.score} instead of {verifier.full_score}: {verdict.reason}"
    return ""
