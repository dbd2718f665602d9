"""Coefficients: what multiplies ``A ∇log π`` of each token, under stop-gradient. One family a file.

Each takes signals of the current pass by name and returns c, (B, T) or (B, 1), detached. The loss is then
``−sg[c] · A · log π``, with the denominator of TRL's ``cispo``.
"""

from evenkeel.trainer.algorithms.registry import collected, no_other

globals().update(collected(__name__))
__getattr__ = no_other(__name__)
