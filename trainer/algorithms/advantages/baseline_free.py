"""Estimators without a baseline: what a response earned is what its tokens get, also where a whole group earned it."""

import torch
from jaxtyping import Float
from torch import Tensor

from evenkeel.trainer.algorithms.contract import NotNegative, traits
from evenkeel.trainer.algorithms.groups import scored_right


@traits(trains_dead_groups=True)
def reinforce(rewards: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
    """The reward itself.

    ``A_i = r_i``.

    Source: REINFORCE (Williams, 1992), without a baseline.
    Evidence: the definition.
    Limits: the noisiest estimator there is; rewards that are all positive push every sampled token up.
    """
    return rewards.clone()


@traits(trains_dead_groups=True)
def psr(rewards: Float[Tensor, "N"], *, right_at: float = 1.0) -> Float[Tensor, "N"]:
    """Positive samples only: right answers are reinforced, wrong ones left alone.

    ``A_i = r_i`` where ``r_i ≥ right_at``, else 0.

    Source: PSR (arXiv 2506.01347).
    Evidence: golden table from running the authors' ``compute_psr_nsr_outcome_advantage``.
    Limits: published for rewards of 0 and 1.
    """
    right, _ = scored_right(rewards, right_at)
    return rewards.where(right, 0.0).masked_fill(rewards.isnan(), torch.nan)


@traits(trains_dead_groups=True)
def nsr(rewards: Float[Tensor, "N"], *, right_at: float = 1.0) -> Float[Tensor, "N"]:
    """Negative samples only: wrong answers are pushed down, right ones left alone.

    ``A_i = r_i − right_at`` where ``r_i < right_at`` (−1 for a reward of 0), else 0.

    Source: NSR (arXiv 2506.01347).
    Evidence: golden table from running the authors' ``compute_psr_nsr_outcome_advantage``.
    Limits: published for rewards of 0 and 1.
    """
    _, wrong = scored_right(rewards, right_at)
    return (rewards - right_at).where(wrong, 0.0).masked_fill(rewards.isnan(), torch.nan)


@traits(trains_dead_groups=True)
def w_reinforce(
    rewards: Float[Tensor, "N"], *, positive_weight: NotNegative = 0.1, right_at: float = 1.0
) -> Float[Tensor, "N"]:
    """Negative samples in full, positive ones at a tenth.

    ``A_i = λ r_i`` where ``r_i ≥ right_at``, else ``r_i − right_at``; λ = ``positive_weight``. It is
    ``λ·psr + nsr``.

    Source: W-REINFORCE (arXiv 2506.01347), λ = 0.1.
    Evidence: golden table from running the authors' ``compute_psr_nsr_outcome_advantage``.
    Limits: published for rewards of 0 and 1.
    """
    return positive_weight * psr(rewards, right_at=right_at) + nsr(rewards, right_at=right_at)
