"""The importance ratio of the trainer's policy to the engine's: TRL's correction of vLLM's samples."""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

CorrectionMode = Literal["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]


def engine_ratio(
    logps: Float[Tensor, "B T"],
    engine_logps: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    mode: CorrectionMode,
    clip_min: float | None,
    clip_max: float | None,
) -> Float[Tensor, "B K"]:
    """``ρ = π_old / π_engine`` of each token (K = T) or, in the ``sequence_…`` modes, of each response (K = 1).

    ``ρ_t = exp(log π_old − log π_engine)``, 1 where the token is not counted or the engine gave no number (NaN);
    ``ρ = exp Σ_t log ρ_t`` of a response. ``…_truncate`` holds ρ within [clip_min, clip_max], ``…_mask`` makes it 0
    outside; ``None`` leaves that side open. Detached.

    Source: TRL 1.16, `GRPOTrainer._generate_and_score_completions`, whose gradient it gives (tested in every mode).
    Truncated importance sampling: Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL".
    """
    log_ratio = ((logps.detach() - engine_logps) * mask).nan_to_num(nan=0.0)
    if mode.startswith("sequence"):
        log_ratio = log_ratio.sum(dim=-1, keepdim=True)
    ratio = log_ratio.exp()
    if mode.endswith("truncate"):
        return ratio if clip_min is None and clip_max is None else ratio.clamp(min=clip_min, max=clip_max)
    low = -math.inf if clip_min is None else clip_min
    high = math.inf if clip_max is None else clip_max
    return torch.where((ratio < low) | (ratio > high), 0.0, ratio)
