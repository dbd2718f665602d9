"""Implicit process-level advantages from repaired answers, arXiv 2605.16302."""

from typing import Annotated

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.contract import PositiveShare, traits


@traits(trains_dead_groups=True)
def ibpo(
    rewards: Float[Tensor, "N"],
    group_size: int,
    correct: Float[Tensor, "N"],
    repair: Float[Tensor, "N"],
    edited: Bool[Tensor, "N T"] | Float[Tensor, "N T"],
    *,
    lam: Annotated[float, Field(ge=0, lt=1)] = 0.6,
    rho: PositiveShare = 1.0,
    cap_failed: bool = True,
    train_correct: bool = True,
) -> Float[Tensor, "N T"]:
    """GRPO on rewards shaped by repairability; of a repaired wrong answer only the edited tokens are credited.

    ``R'_i = r_i + λ ρ (1 − correct_i) φ_i``, ``A_i = (R'_i − mean_G R') / (std_G R' + ε)``, shaped before centring;
    ``A_{i,t} = A_i m_{i,t}``, ``m`` = 1 on the tokens that a repair edited, for wrong answers with ``λ ρ φ > 0``;
    1 everywhere else.

    φ = 0 everywhere, or λ = 0, is `grpo` bit for bit. A group is dead where R' is constant: one of wrong answers alone
    learns where φ varies. An unscored φ counts as 0, and so does the φ of a response whose ``correct`` is unscored.

    λ is in units of the reward. Where a right answer earns 1 more than a wrong one, λ < 1 keeps every wrong answer
    below every right one; λ = 1 ties them and λ > 1 inverts them, hence refused.

    Args:
        repair: φ in [0, 1], a column that the revision leaves (`repair_scores`).
        edited: 1 where a successful repair edited the token, a column that the revision leaves (`edit_mask`).
        lam: λ, in [0, 1). The paper's value is about 0.6.
        rho: ours. A second factor in (0, 1]: the paper's ``Δ = ρ·1[repaired]`` with ρ = 0.5 may or may not be part of
            φ; 1 reads it as folded into λ, 0.5 reads it literally.
        cap_failed: ours. No wrong answer that a repair lifted is pushed up: A ≤ 0. Without it one right and two
            hopeless answers give a repairable *wrong* one A = +0.41, on the very tokens that were wrong.
        train_correct: ours. Off, right answers are references alone and get 0, as in the same authors' IOP.

    Source: IBPO, arXiv 2605.16302 (also 2604.13088 v2): shaped reward, λ, mask; IOP, 2605.05226 v2, where silent.

    Evidence: digests, no body, no code. What they leave open is an option named as ours, here and in `RevisionOptions`.
    Limits: the repair's own edited tokens (IOP's second half) are not trained, which would need rows of their own.
    """
    bonus = torch.where(correct == 0, lam * rho * repair.nan_to_num(), 0.0)
    advantages = grpo(rewards + bonus, group_size)
    lifted = (bonus > 0) & ~rewards.isnan()
    if cap_failed:
        advantages = torch.where(lifted, advantages.clamp(max=0.0), advantages)
    if not train_correct:
        advantages = advantages.masked_fill((correct == 1) & ~rewards.isnan(), 0.0)
    unedited = lifted[:, None] & (edited == 0)
    return advantages[:, None].expand(edited.shape).masked_fill(unedited, 0.0)
