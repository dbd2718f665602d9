"""The importance ratio of a whole trajectory, current policy against the one that sampled it."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

RatioForm = Literal["product", "geometric"]
"""``product``: Π_t ρ_t, the ratio itself. ``geometric``: its 1/L-th power, as GSPO has it."""

LOG_RATIO_BOUND = 20.0
"""A trajectory's log ratio is held within ± this, e^20 = 4.9e8: beyond it float32 sums of ratios lose all other rows.
The same bound as in verl's and VESPO's published losses."""


def trajectory_ratios(
    log_ratio: Float[Tensor, "B T"], mask: Int[Tensor, "B T"], form: RatioForm = "product"
) -> Float[Tensor, "B"]:
    """``w_i = Π_t ρ_{i,t}`` (product) or its geometric mean ``exp((1/L_i) Σ_t log ρ_{i,t})``, over tokens that count.

    (B,) > 0. A trajectory without a token that counts has w = 1. Σ log ρ is held within ± `LOG_RATIO_BOUND`.

    Source: arXiv 2604.13088 v1 (product; ``s_i = Π_t r_{i,t}``); arXiv 2507.18071 (geometric mean, GSPO).
    """
    logs = torch.where(mask.bool(), log_ratio, 0.0).double().sum(1)
    if form == "geometric":
        logs = logs / mask.sum(1).clamp(min=1)
    return logs.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp().to(log_ratio.dtype)
