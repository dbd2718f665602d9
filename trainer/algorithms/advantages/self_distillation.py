"""Self-distillation policy optimization (SDPO): the policy that knows the answer credits each token."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.contract import traits


@traits(trains_dead_groups=True)
def sdpo(
    rewards: Float[Tensor, "N"],
    mask: Int[Tensor, "N T"],
    old_logps: Float[Tensor, "N T"],
    teacher_logps: Float[Tensor, "N T"],
) -> Float[Tensor, "N T"]:
    """SDPO: how much likelier a token is to the same policy once it is shown the answer.

    ``A_{i,t} = log π_T(y_t) − log π_old(y_t)``, π_T the policy under a prompt that shows the answer (`teacher_logps`):
    the gradient of ``−KL(π || π_T)`` as the sampled tokens estimate it. The reward is not in it, except that unscored
    responses are left out. ``{name: mix, of: {grpo: 0.5, sdpo: 0.5}}`` adds it to GRPO (Eq. 3 there).

    Source: SDPO (arXiv 2601.20802), at the level of sampled tokens.
    Evidence: golden table: the gradient of the authors' ``compute_self_distillation_loss`` (``alpha: 1``, without
        ``full_logit_distillation``), by autograd at the policy that sampled.
    Limits: the authors' scripts distil the 20 or 100 likeliest tokens of each position, which no factor of
        ``A ∇log π`` of the sampled token can; their teacher is shown a sibling's right solution or feedback, and its
        weights are averaged or regularized. Here it is shown the reference, and is the present policy.
    """
    return ((teacher_logps - old_logps) * mask).masked_fill(rewards.isnan()[:, None], torch.nan)
