"""Future-KL Influenced Policy Optimization (FIPO), arXiv 2603.19835."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.coefficients.importance_ratios import importance_ratio
from evenkeel.trainer.algorithms.contract import AboveOne, OpenShare, Positive, Share
from evenkeel.trainer.algorithms.sequence_weights import LOG_RATIO_BOUND
from evenkeel.trainer.algorithms.turns import counted_first

_CHUNK = 128


def fipo(
    log_ratio: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    *,
    half_life: Positive = 32.0,
    influence: Share = 0.2,
    high_only: bool = True,
    epsilon_low: OpenShare = 0.2,
    epsilon_high: Positive = 0.28,
    dual_clip: AboveOne = 10.0,
    safety: float = 10.0,
) -> Float[Tensor, "B T"]:
    """FIPO: PPO's clipped ratio, and more of it where the tokens that follow have become likelier.

    ``c_t = f_t ρ_t`` with ``f_t = clip(e^{F_t}, 1, 1 + influence)`` and ``F_t = Σ_{k ≥ t} γ^{k−t} log ρ_k``,
    γ = 2^(−1/half_life), over the tokens that count with ``ρ_k ≤ dual_clip``. 0 where PPO clips: A > 0 and
    ρ > 1 + epsilon_high, A < 0 and ρ < 1 − epsilon_low or ρ > dual_clip; and in all of a response with two tokens or
    more of the last kind. (B, T) ≥ 0, 1 on-policy.

    With ``high_only=False`` the lower bound of f is 1 − influence, which the authors use for smaller models. Where
    A < 0 and ρ > ``safety``, f is held within [0.8, 1].

    Source: FIPO (arXiv 2603.19835); the authors' code, defaults of their script for 32B.
    Evidence: golden table: the gradient of the authors' ``compute_policy_loss_future_kl``, by autograd, of their first
        public commit, which a fork's history holds.
    Limits: the authors average over the tokens of the responses that are left, here those left out keep their place in
        the denominator. The script leaves out truncated and too uniform groups by other means, which are TRL's options
        and the prompt sampler ``dynamic``.
    """
    logs, ratio = log_ratio.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND), importance_ratio(log_ratio)
    heard = mask.bool() & (logs <= math.log(dual_clip))
    # what a tool inserts takes no part in the distances
    order = counted_first(mask)
    tails = _discounted_tails(logs.masked_fill(~heard, 0.0).gather(1, order), 2.0 ** (-1.0 / half_life))
    future = torch.empty_like(tails).scatter(1, order, tails)
    factor = future.exp().clamp(1.0 if high_only else 1.0 - influence, 1.0 + influence)
    bad = advantages < 0
    factor = torch.where(bad & (ratio > safety), factor.clamp(0.8, 1.0), factor)
    far = bad & (ratio > dual_clip)
    clipped = torch.where(bad, (ratio < 1 - epsilon_low) | far, ratio > 1 + epsilon_high)
    left_out = (far & mask.bool()).sum(1, keepdim=True) > 1
    return (factor * ratio).masked_fill(clipped | left_out, 0.0)


def _discounted_tails(values: Float[Tensor, "B T"], decay: float) -> Float[Tensor, "B T"]:
    """``Σ_{k ≥ t} decay^{k−t} v_k``, by products with a matrix of 128 tokens: nothing is divided by a small power."""
    length = values.shape[1]
    padded = torch.nn.functional.pad(values, (0, -length % _CHUNK))
    places = torch.arange(_CHUNK, device=values.device)
    distances = places[:, None] - places  # of place k from t
    powers = (decay ** distances.clamp(min=0).to(values.dtype)).masked_fill(distances < 0, 0.0)
    onward = decay ** (_CHUNK - places).to(values.dtype)
    tails = []
    carry = values.new_zeros(len(values), 1)
    for chunk in reversed(padded.split(_CHUNK, dim=1)):
        tails.append(chunk @ powers + carry * onward)
        carry = tails[-1][:, :1]
    return torch.cat(tails[::-1], dim=1)[:, :length]
