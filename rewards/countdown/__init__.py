"""Countdown: reach a target with given numbers and the four operations. Verifier, solver and problem generator."""

from rewards.countdown.expressions import Expression, MalformedExpressionError, parse_expression
from rewards.countdown.generator import CountdownProblem, generate_countdown
from rewards.countdown.solver import LARGEST_SEARCH, solution
from rewards.countdown.verifier import Countdown

__all__ = [
    "LARGEST_SEARCH",
    "Countdown",
    "CountdownProblem",
    "Expression",
    "MalformedExpressionError",
    "generate_countdown",
    "parse_expression",
    "solution",
]
