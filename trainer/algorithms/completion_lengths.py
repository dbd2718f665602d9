"""How long completions are, and how many were cut off: TRL's own numbers, of rows that it has not generated itself."""

from jaxtyping import Bool, Int
from torch import Tensor

AREA = "completions/"


def completion_lengths(lengths: Int[Tensor, " N"], is_truncated: Bool[Tensor, " N"]) -> dict[str, float]:
    """TRL's ``completions/…`` of the rows given: mean, least and most tokens, of all and of those that ended.

    ``clipped_ratio`` is the share of ``is_truncated``, which ended with no end of sequence; where all did, the lengths
    of those that ended are 0.

    Source: `GRPOTrainer._generate` of TRL 1.16.
    """
    ended = lengths[~is_truncated]
    ended = ended if len(ended) else lengths.new_zeros(1)
    found = {f"{AREA}clipped_ratio": is_truncated.float().mean().item()}
    for kind, values in (("length", lengths.float()), ("terminated_length", ended.float())):
        statistics = {"mean": values.mean(), "min": values.min(), "max": values.max()}
        found |= {f"{AREA}{name}_{kind}": value.item() for name, value in statistics.items()}
    return found
