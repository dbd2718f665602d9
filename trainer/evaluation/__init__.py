"""Held-out evaluation: how completions are drawn, what their verdicts say, and where both are kept."""

from evenkeel.trainer.evaluation.decoding import Decoding, decodings
from evenkeel.trainer.evaluation.result import EvaluationResult

__all__ = ["Decoding", "EvaluationResult", "decodings"]
