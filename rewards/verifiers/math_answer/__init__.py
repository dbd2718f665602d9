"""Final answers of mathematics problems."""

from rewards.verifiers.math_answer.verifier import MathAnswer

__all__ = ["MathAnswer"]
