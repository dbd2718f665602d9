"""Countdown: reach a target with given numbers and the four operations. Verifier and solver."""

from rewards.verifiers.countdown.expressions import Expression, MalformedExpressionError, parse_expression
from rewards.verifiers.countdown.solver import LARGEST_SEARCH, solution
from rewards.verifiers.countdown.verifier import Countdown

__all__ = [
    "LARGEST_SEARCH",
    "Countdown",
    "Expression",
    "MalformedExpressionError",
    "parse_expression",
    "solution",
]
