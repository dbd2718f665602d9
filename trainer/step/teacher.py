"""The prompts behind which a rollout batch is scored again: the rows' own, with the gold answer or a sibling's."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from evenkeel.trainer.algorithms.teachers import TeacherOptions
from evenkeel.trainer.step.revisions import in_place_of_text
from evenkeel.trainer.step.rollout import Row

REFERENCE = "reference"
"""The column of gold answers."""
NO_VERDICTS = (
    "teacher_contrast: the reward functions leave no verdict on each completion in the column `correct`, so no sibling "
    "is known to be right or wrong. Rewards made of verifiers leave it; a function of your own calls "
    "log_extra('correct', [True, False, None, …]), one for each completion."
)


def privileged_prompts(rows: Iterable[Row], options: TeacherOptions) -> list[Any]:
    """The teacher's prompt for each row, text or messages as the row's own is.

    Raises:
        ValueError: a reference is no text or number (see `reference_text`), or a prompt's last message is not text.
    """
    return [
        in_place_of_text(
            row["prompt"],
            partial(options.privileged_prompt, reference=reference_text(row.get(REFERENCE))),
            "teacher_logps",
            "Score",
        )
        for row in rows
    ]


def sibling_prompts(
    rows: Iterable[Row], siblings: Iterable[int], responses: Sequence[str], options: TeacherOptions
) -> list[Any]:
    """For each row its prompt with the response of its sibling, a place in ``responses``; −1 = its own prompt.

    Raises:
        ValueError: a prompt's last message is not text.
    """
    return [
        row["prompt"]
        if sibling < 0
        else in_place_of_text(
            row["prompt"], partial(options.sibling_prompt, response=responses[sibling]), "teacher_contrast", "Score"
        )
        for row, sibling in zip(rows, siblings, strict=True)
    ]


def reference_text(reference: Any) -> str:
    """A gold answer as a teacher is shown it.

    Raises:
        ValueError: neither text nor a number. What else a verifier judges by (numbers and a target, statements) need
            not hold the answer, and a teacher that learns nothing new would credit noise.
    """
    text = str(reference).strip() if isinstance(reference, str | int | float) else ""
    if not text:
        raise ValueError(
            f"teacher_logps: the row's reference is {reference!r:.80}, and a teacher is shown the gold answer as text. "
            "Name a column of answers (columns: {reference: answer} in a run file, a column `reference` of the data in "
            "Python), or choose a strategy that names no teacher_logps."
        )
    return text


def unusable_references(data: Any) -> str | None:
    """Why rows cannot be shown to a teacher, if it can be seen before training; streamed data is not read."""
    columns = getattr(data, "column_names", None)
    if columns is None or not hasattr(data, "__len__"):
        return None
    for reference in data[REFERENCE] if REFERENCE in columns else [None]:
        try:
            reference_text(reference)
        except ValueError as error:
            return str(error)
    return None
