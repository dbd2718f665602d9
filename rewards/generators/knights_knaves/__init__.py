"""Puzzles of knights and knaves: made from a seed, split without overlap up to renaming."""

from evenkeel.rewards.generators.knights_knaves.generator import Split, generate_puzzles, generate_split

__all__ = ["Split", "generate_puzzles", "generate_split"]
