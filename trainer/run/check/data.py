"""Rows that are there more than once, on both sides, or with their answer."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from trainer.run.check.finding import Finding, note, warning
from trainer.run.check.subject import Subject

_MOST_NAMED = 5


def data_findings(subject: Subject) -> Iterator[Finding]:
    """Duplicates, contradictions, overlap of training and held-out rows, prompts that end with an answer."""
    questions = {part: [_question(prompt) for prompt in rows["prompt"][:]] for part, rows in subject.rows.items()}
    trained = set(questions.get("train", ()))
    for part, asked in questions.items():
        rows = subject.rows[part]
        yield from _answered(part, rows["prompt"][:])
        yield from _repeated(part, asked, rows["reference"][:])
        seen = [row for row, question in enumerate(asked) if question in trained]
        if part != "train" and seen:
            yield warning(
                "data",
                f"data.{part}: {len(seen)} of the {len(asked)} held-out rows of data.{part} are trained on (rows "
                f"{_named(seen)}), so their accuracy says what was memorised. Take them out of one of the two; of a "
                "generator give both the same seed, and part: train or test.",
            )
    if subject.config.data.test is None:
        yield note("data", "There are no held-out rows (data.test), so only the reward on trained prompts is seen.")


def _question(prompt: Sequence[Any]) -> str:
    """What makes two prompts the same: the messages but for the system's, up to runs of white space."""
    asked = [[each["role"], " ".join(each["content"].split())] for each in prompt if each["role"] != "system"]
    return json.dumps(asked, ensure_ascii=False)


def _answered(part: str, prompts: Sequence[Any]) -> Iterator[Finding]:
    answered = [row for row, prompt in enumerate(prompts) if prompt[-1]["role"] == "assistant"]
    if answered:
        yield warning(
            "data",
            f"data.{part}: {len(answered)} prompts end with a message of the assistant (rows {_named(answered)}), "
            "which "
            "the policy would be shown before it answers. Name a column of questions under `columns:`, or cut the "
            "messages before it.",
        )


def _repeated(part: str, asked: Sequence[str], references: Sequence[Any]) -> Iterator[Finding]:
    rows = defaultdict(list)
    for row, question in enumerate(asked):
        rows[question].append(row)
    again = {question: found for question, found in rows.items() if len(found) > 1}
    other = [found for found in again.values() if any(references[row] != references[found[0]] for row in found)]
    if other:
        yield warning(
            "data",
            f"data.{part}: {len(other)} prompts stand there with different references (first rows "
            f"{_named(other[0])}): what is right in one is wrong in the other. Remove all but one of each.",
        )
    same = sum(len(found) - 1 for found in again.values()) - sum(len(found) - 1 for found in other)
    if same:
        first = next(found for found in again.values() if found not in other)
        yield warning(
            "data",
            f"data.{part}: the same prompt stands there again in {same} of {len(asked)} rows (first in rows "
            f"{_named(first)}), which counts it more than once. Remove them, or leave them if that is meant.",
        )


def _named(rows: Sequence[int]) -> str:
    more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
    return ", ".join(map(str, rows[:_MOST_NAMED])) + more
