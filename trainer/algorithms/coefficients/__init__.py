"""Coefficients: what multiplies ``A ∇log π`` of each token, under stop-gradient. One family a file.

Each takes signals of the current pass by name and returns c, (B, T) or (B, 1), detached. The loss is then
``−sg[c] · A · log π``, with the denominator of TRL's ``cispo``.
"""

from typing import Any

from evenkeel.trainer.algorithms.registry import collected

globals().update(collected(__name__))


def __getattr__(name: str) -> Any:
    raise AttributeError(f"{__name__} has no {name!r}. Its strategies: {', '.join(collected(__name__))}.")
