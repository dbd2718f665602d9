"""Rewards and strategies: misspelt, without effect, or not exact together."""

from tests.trainer.run.check.mistakes.mistake import mistake

FORM = "{verifier: {name: soft_overlong, max_tokens: 8, buffer_tokens: 2}}"

REWARDS = [
    mistake("the only reward weighs nothing", "no-positive-weight", "rewards.0.weight=0.0", says="weight: 1.0"),
    mistake(
        "the only reward is a penalty",
        "no-positive-weight",
        "rewards.0.weight=-1.0",
    ),
    mistake(
        "form alone is rewarded",
        "no-reward-reads-reference",
        f"rewards=[{FORM}]",
        severity="warning",
    ),
    mistake(
        "form decides what is right",
        "form-scored-first",
        f"rewards=[{FORM}, {{verifier: exact_match}}]",
        severity="warning",
    ),
    mistake(
        "a revision that nothing asks for",
        "unused-revision",
        "algorithm.revision={references: 2}",
        says="advantage: ibpo",
    ),
    mistake(
        "a teacher that nothing asks for",
        "unused-teacher",
        "algorithm.teacher={template: '{prompt} {reference}'}",
        says="token_weight: rlsd",
    ),
    mistake(
        "IBPO without its revision", "missing-revision", "algorithm.advantage=ibpo", says="revision: {references: 3}"
    ),
]
