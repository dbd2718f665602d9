"""Puzzles of knights and knaves: made from a seed, split without overlap up to renaming, with worked rationales."""

from evenkeel.rewards.generators.knights_knaves.generator import Split, generate_puzzles, generate_split, row
from evenkeel.rewards.generators.knights_knaves.rationale import Rationale, rationale

__all__ = ["Rationale", "Split", "generate_puzzles", "generate_split", "rationale", "row"]
