"""The weight that the configured loss gives to a whole trajectory: k_i of algorithms that must know it."""

from jaxtyping import Float, Int
from torch import Tensor

PER_SEQUENCE_MEAN = frozenset({"grpo", "sapo"})
"""TRL loss types that average over a response's tokens: k_i = 1 / L_i."""
ONE_DENOMINATOR = frozenset({"dapo", "dr_grpo", "cispo", "luspo"})
"""TRL loss types with one denominator for all responses of an update: k_i constant."""
# bnpo's denominator is the token count of a micro-batch, unknown when advantages are computed; vespo's weight depends
# on the advantage's own sign. For neither does a k exist beforehand.


def loss_sequence_weights(
    loss_type: str, lengths: Int[Tensor, "N"], sequence_ratio: Float[Tensor, "N"] | None = None
) -> Float[Tensor, "N"]:
    """What a TRL loss multiplies every token of response i by, up to a constant: ``k_i`` (N,) ≥ 0.

    ``1/L_i`` for the losses that average per sequence (grpo, sapo), 1 for those with one denominator (dapo, dr_grpo,
    cispo, luspo); times ``sequence_ratio`` where a sequence-level importance ratio is known when the batch is sampled
    (vLLM's correction). A response without tokens weighs 0.

    Raises:
        ValueError: a loss type for which no such weight exists before the update (bnpo, vespo, unknown ones).
    """
    present = (lengths > 0).float()
    if loss_type in PER_SEQUENCE_MEAN:
        weights = present / lengths.clamp(min=1)
    elif loss_type in ONE_DENOMINATOR:
        weights = present
    else:
        raise ValueError(
            f"loss_type {loss_type!r} has no trajectory weight that is known when advantages are computed, so no "
            f"baseline can match it. Use one of {', '.join(sorted(PER_SEQUENCE_MEAN | ONE_DENOMINATOR))}."
        )
    return weights if sequence_ratio is None else weights * sequence_ratio
