"""Rows that are both trained and tested, or contain their answer; rewards from which nothing is learned."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from evenkeel.errors import Problem
from evenkeel.trainer.run.check.context import CheckContext, first_of
from evenkeel.trainer.run.data.conversations import as_messages


def data_problems(context: CheckContext) -> Iterator[Problem]:
    """Repeated prompts, overlap of training and held-out rows, prompts that end with an answer."""
    trained: set[str] = set()
    for part, rows in context.rows.items():
        place, prompts = ("data", *part.split(".")), [*map(as_messages, rows["prompt"][:])]
        asked = [_question(prompt) for prompt in prompts]
        if context.config.environment is not None:  # its reset may build the question from the reference
            asked = [f"{question}\0{reference!r}" for question, reference in zip(asked, rows["reference"], strict=True)]
        if answered := [row for row, prompt in enumerate(prompts) if prompt[-1]["role"] == "assistant"]:
            what = f"{len(answered)} prompts end with a message of the assistant (rows {first_of(answered)})."
            yield Problem(place, what, code="prompt-ends-with-answer", severity="warning")
        first = {question: row for row, question in reversed([*enumerate(asked)])}
        if again := [row for row, question in enumerate(asked) if first[question] < row]:
            what = f"{len(again)} of {len(asked)} rows repeat the prompt of an earlier one (rows {first_of(again)})."
            yield Problem(place, what, code="repeated-prompts", severity="warning")
        if seen := [row for row, question in enumerate(asked) if question in trained]:
            what = f"{len(seen)} of the {len(asked)} held-out rows are trained on (rows {first_of(seen)})."
            yield Problem(place, what, "Take them out.", code="held-out-rows-trained", severity="warning")
        trained |= {*asked} if part == "train" else set()


def _question(prompt: Sequence[Any]) -> str:
    """The key by which prompts are equal: all messages but the system's, with white space collapsed."""
    asked = [[each["role"], " ".join(each["content"].split())] for each in prompt if each["role"] != "system"]
    return json.dumps(asked, ensure_ascii=False)


def reward_problems(context: CheckContext) -> Iterator[Problem]:
    """Weights under which nothing is learned, or its opposite; rewards for form alone."""
    rewards, verifiers = context.config.rewards, context.experiment.verifiers
    paid = [reward.label for reward in rewards if reward.weight > 0]
    if not paid:
        what = "is not above 0 for any reward: nothing right is paid."
        yield Problem(("rewards", 0, "weight"), what, "Write weight: 1.0.", code="no-positive-weight")
    if len(verifiers) < len(rewards):
        return
    reading = {label for label, verifier in verifiers.items() if verifier.reads_reference}
    if paid and not reading & {*paid}:
        what = "pay the form of an answer and never whether it is right: none reads the reference."
        yield Problem(("rewards",), what, code="no-reward-reads-reference", severity="warning")
    elif rewards[0].label not in reading and len(rewards) > 1 and rewards[0].task is None:
        what = "scores the form alone, and the first reward says whether a row is right."
        yield Problem(("rewards", 0), what, "Put another first.", code="form-scored-first", severity="warning")
