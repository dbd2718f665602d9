"""Knights and knaves: the puzzle language, a generator of puzzles and rationales, and the verifier."""

from rewards.knights_knaves.generator import Split, generate_puzzles, generate_split, row
from rewards.knights_knaves.puzzle import Puzzle, parse_statements, solutions
from rewards.knights_knaves.rationale import Rationale, rationale
from rewards.knights_knaves.verifier import KnightsKnaves

__all__ = [
    "KnightsKnaves",
    "Puzzle",
    "Rationale",
    "Split",
    "generate_puzzles",
    "generate_split",
    "parse_statements",
    "rationale",
    "row",
    "solutions",
]
