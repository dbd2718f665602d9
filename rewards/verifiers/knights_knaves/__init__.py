"""Knights and knaves: the puzzle language and the verifier."""

from evenkeel.rewards.verifiers.knights_knaves.puzzle import Puzzle, parse_statements, solutions
from evenkeel.rewards.verifiers.knights_knaves.verifier import KnightsKnaves

__all__ = ["KnightsKnaves", "Puzzle", "parse_statements", "solutions"]
