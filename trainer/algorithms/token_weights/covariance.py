"""Clip-Cov, arXiv 2505.22617."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.contract import Share, traits
from evenkeel.trainer.algorithms.row_draws import row_draws


@traits(depends_on_the_cut=True)
def clip_cov(
    old_logps: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    row_keys: Int[Tensor, " B"],
    *,
    share: Share = 2e-4,
    lower: float = 1.0,
    upper: float = 5.0,
    seed: int = 0,
) -> Float[Tensor, "B T"]:
    """Clip-Cov: a few tokens whose log probability goes along with their advantage are left out of the loss.

    ``cov_{i,t} = (A_{i,t} − mean A)(log π_old(i,t) − mean log π_old)``, means over the tokens that count. Of those with
    ``lower < cov < upper``, ``max(⌊share · tokens⌋, 1)`` are drawn and weigh 0; all others weigh 1. These tokens lower
    the policy's entropy most.

    Means and number are of the batch handed in, a micro-batch in training, as in the authors' code. The draw is not:
    each token has its own random number, a function of ``seed`` and of which row of the run its response is, and the
    smallest ones are drawn. The same rows in the same micro-batch lose the same tokens in every update.

    Raises:
        ValueError: lower ≥ upper.

    Source: arXiv 2505.22617 (Clip-Cov); the authors' code.
    Evidence: which tokens can be drawn equals `compute_policy_loss_clip_cov` of PRIME-RL/Entropy-Mechanism-of-RL, run
    on seeded inputs with share 1, where all are; the draw itself is ours.
    Limits: log π_old stands for log π of the current pass: equal in the first update of a rollout batch only, where
    also no token is clipped yet (the authors leave clipped ones out).
    """
    if lower >= upper:
        raise ValueError(f"clip_cov: lower = {lower} is not below upper = {upper}: no token would be left out.")
    if share == 0.0:
        return torch.ones_like(old_logps)
    tokens = mask.sum()
    surprise, signal = (x - (x * mask).sum() / tokens.clamp(min=1) for x in (old_logps, advantages))
    covariance = surprise * signal
    candidates = mask.bool() & (covariance > lower) & (covariance < upper)
    number = (share * tokens.double()).long().clamp(min=1)
    draws = row_draws(row_keys, mask, seed).masked_fill(~candidates, torch.inf)
    chosen = draws.flatten().argsort(stable=True).argsort().view(draws.shape) < number
    return (~(chosen & candidates)).to(old_logps.dtype)
