"""Knights and knaves: the puzzle language and the verifier."""

from rewards.verifiers.knights_knaves.puzzle import Puzzle, parse_statements, solutions
from rewards.verifiers.knights_knaves.verifier import KnightsKnaves

__all__ = ["KnightsKnaves", "Puzzle", "parse_statements", "solutions"]
