"""Token weights: how much of its advantage each token receives. One pure function a rule.

Each takes the old policy's token probabilities ``probs`` at the sampling temperature, the token ``advantages`` and the
``mask`` of tokens that count, all (B, T), and returns weights (B, T) ≥ 0 that multiply the advantages. Weighting
advantages by w ≥ 0 *is* weighting the loss: ``min(ρ·wA, clip(ρ)·wA) = w·min(ρA, clip(ρ)A)``. A negative weight would
turn the clip to the wrong side, and is refused when a rule is registered.
"""

from evenkeel.trainer.algorithms.registry import collected, no_other

globals().update(collected(__name__))
__getattr__ = no_other(__name__)
