"""Final answers of mathematics problems."""

from evenkeel.rewards.verifiers.math_answer.verifier import MathAnswer

__all__ = ["MathAnswer"]
