"""Rows that are there more than once, on both sides, or with their answer; rewards that cannot teach."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from evenkeel.trainer.run.check.context import CheckContext, Finding, error, first_of, note, warning
from evenkeel.trainer.step.other_prompts import unusable_references


def data_findings(context: CheckContext) -> Iterator[Finding]:
    """Duplicates, contradictions, overlap of training and held-out rows, prompts that end with an answer."""
    questions = {part: [_question(prompt) for prompt in rows["prompt"][:]] for part, rows in context.rows.items()}
    if context.config.environment is not None:  # what its reset makes of the reference is part of the question
        for part, asked in questions.items():
            references = context.rows[part]["reference"][:]
            questions[part] = [
                f"{question}\0{reference!r}" for question, reference in zip(asked, references, strict=True)
            ]
    trained = set(questions.get("train", ()))
    for part, asked in questions.items():
        rows = context.rows[part]
        yield from _answered(part, rows["prompt"][:])
        yield from _repeated(part, asked, rows["reference"][:])
        seen = [row for row, question in enumerate(asked) if question in trained]
        if part != "train" and seen:
            yield warning(
                "data",
                "held-out-rows-trained",
                f"data.{part}: {len(seen)} of the {len(asked)} held-out rows of data.{part} are trained on (rows "
                f"{first_of(seen)}), so their accuracy says what was memorised. Take them out of one of the two; of a "
                "generator give both the same seed, and part: train or test.",
            )
    taught = context.strategies is not None and context.strategies.ask_for("teacher_logps") and "train" in context.rows
    if taught and (fault := unusable_references(context.rows["train"])) is not None:
        yield error("data", "answers-for-a-teacher", f"data.train: {fault}")
    if context.config.data.test is None:
        yield note(
            "data",
            "no-held-out-rows",
            "There are no held-out rows (data.test), so only the reward on trained prompts is seen.",
        )


def _question(prompt: Sequence[Any]) -> str:
    """What makes two prompts the same: the messages but for the system's, up to runs of white space."""
    asked = [[each["role"], " ".join(each["content"].split())] for each in prompt if each["role"] != "system"]
    return json.dumps(asked, ensure_ascii=False)


def _answered(part: str, prompts: Sequence[Any]) -> Iterator[Finding]:
    answered = [row for row, prompt in enumerate(prompts) if prompt[-1]["role"] == "assistant"]
    if answered:
        yield warning(
            "data",
            "prompt-ends-with-answer",
            f"data.{part}: {len(answered)} prompts end with a message of the assistant (rows {first_of(answered)}), "
            "which the policy would be shown before it answers. Name a column of questions under `columns:`, or cut "
            "the messages before it.",
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
            "contradicting-references",
            f"data.{part}: {len(other)} prompts are there with different references (first rows "
            f"{first_of(other[0])}): what is right in one is wrong in the other. Remove all but one of each.",
        )
    same = sum(len(found) - 1 for found in again.values()) - sum(len(found) - 1 for found in other)
    if same:
        first = next(found for found in again.values() if found not in other)
        yield warning(
            "data",
            "repeated-prompts",
            f"data.{part}: the same prompt is repeated in {same} of {len(asked)} rows (first in rows "
            f"{first_of(first)}), which counts it more than once. Remove them, or leave them if that is meant.",
        )


def reward_findings(context: CheckContext) -> Iterator[Finding]:
    """Weights under which nothing is learned, or its opposite; rewards for form alone."""
    rewards = context.config.rewards
    if all(reward.weight == 0 for reward in rewards):
        which = "the only reward" if len(rewards) == 1 else f"all {len(rewards)} rewards"
        yield error(
            "rewards",
            "all-weights-zero",
            f"{which} has weight: 0, so every advantage is 0 and nothing is learned. Write weight: 1.0.",
        )
    elif not any(reward.weight > 0 for reward in rewards):
        yield warning(
            "rewards",
            "no-positive-weight",
            f"rewards.0.weight = {rewards[0].weight:g}, and no other reward has a weight above 0: the policy is taught "
            "to be wrong. Write a positive weight, or leave it out for 1.",
        )
    verifiers = [context.verifiers[reward.label] for reward in rewards if reward.label in context.verifiers]
    if len(verifiers) < len(rewards):
        return
    counted = [verifier for reward, verifier in zip(rewards, verifiers, strict=True) if reward.weight > 0]
    if counted and not any(verifier.reads_reference for verifier in counted):
        yield warning(
            "rewards",
            "no-reward-reads-reference",
            "no reward reads the reference, so only the form of an answer is paid, never whether it is right. Add a "
            "verifier for the answer, such as math_answer or exact_match.",
        )
    elif not verifiers[0].reads_reference and len(rewards) > 1 and rewards[0].task is None:
        yield warning(
            "rewards",
            "form-judged-first",
            f"rewards.0 ({rewards[0].label}) judges the form alone, and the first reward says whether a row is right: "
            "accuracies would count form. Put the verifier of the answer first.",
        )
