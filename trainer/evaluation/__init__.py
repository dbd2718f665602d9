"""Held-out evaluation: drawing of completions, metrics of their verdicts, and the files of both."""

from evenkeel.trainer.evaluation.decoding import Decoding, decodings
from evenkeel.trainer.evaluation.result import EvaluationResult

__all__ = ["Decoding", "EvaluationResult", "decodings"]
