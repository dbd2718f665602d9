"""Rewards for how a completion is written: its tags, its length, its repetitions. None of them reads an answer."""

from rewards.verifiers.formatting.length import CosineLength, SoftOverlong, cosine_schedule, overlong_punishment
from rewards.verifiers.formatting.repetition import RepetitionPenalty, repeated_share
from rewards.verifiers.formatting.structure import Format

__all__ = [
    "CosineLength",
    "Format",
    "RepetitionPenalty",
    "SoftOverlong",
    "cosine_schedule",
    "overlong_punishment",
    "repeated_share",
]
