"""Rewards that cannot teach what the file asks for."""

from collections.abc import Iterator

from trainer.run.check.finding import Finding, error, warning
from trainer.run.check.subject import Subject


def reward_findings(subject: Subject) -> Iterator[Finding]:
    """Weights under which nothing is learned, or its opposite; rewards for form alone."""
    rewards = subject.config.rewards
    if all(reward.weight == 0 for reward in rewards):
        which = "the only reward" if len(rewards) == 1 else f"all {len(rewards)} rewards"
        yield error(
            "rewards", f"{which} has weight: 0, so every advantage is 0 and nothing is learned. Write weight: 1.0."
        )
    elif not any(reward.weight > 0 for reward in rewards):
        yield warning(
            "rewards",
            f"rewards.0.weight = {rewards[0].weight:g}, and no other reward has a weight above 0: the policy is taught "
            "to be wrong. Write a positive weight, or leave it out for 1.",
        )
    verifiers = [subject.verifiers.get(reward.label) for reward in rewards]
    if any(verifier is None for verifier in verifiers):
        return
    counted = [v for reward, v in zip(rewards, verifiers, strict=True) if v is not None and reward.weight > 0]
    if counted and not any(verifier.reads_reference for verifier in counted):
        yield warning(
            "rewards",
            "no reward reads the reference, so only the form of an answer is paid, never whether it is right. Add a "
            "verifier for the answer, such as math_answer or exact_match.",
        )
    elif verifiers[0] is not None and not verifiers[0].reads_reference and len(rewards) > 1 and _judges_all(subject):
        yield warning(
            "rewards",
            f"rewards.0 ({rewards[0].label}) judges the form alone, and the first reward says whether a row is right: "
            "accuracies would count form. Put the verifier of the answer first.",
        )


def _judges_all(subject: Subject) -> bool:
    return subject.config.rewards[0].task is None
