"""Token weights from what the policy thinks of its own tokens once it is shown an answer (RLSD, RLCSD)."""

from typing import Annotated

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from evenkeel.trainer.algorithms.contract import NotNegative, Positive, Share


def rlsd(
    advantages: Float[Tensor, "B T"],
    old_logps: Float[Tensor, "B T"],
    teacher_logps: Float[Tensor, "B T"],
    step: int,
    *,
    strength: Share = 0.5,
    max_change: Share = 0.2,
    decay_steps: Annotated[int, Field(ge=0)] = 0,
) -> Float[Tensor, "B T"]:
    """RLSD: tokens that the answer makes likelier weigh more in good responses and less in bad ones.

    ``w_{i,t} = (1 − λ) + λ clip((π_T / π_old)^sign(A), 1 − ε, 1 + ε)``, π_T the policy under a prompt that shows the
    answer (`teacher_logps`), λ = ``strength``, ε = ``max_change``. The verifier's reward says which way a response is
    pushed, the teacher only how far each token. With ``decay_steps`` λ falls linearly to 0 in so many steps;
    the authors' scripts write 50.

    Source: RLSD (arXiv 2604.03128), as THU-BPM/RLCSD writes it; λ and ε of its scripts.
    Evidence: golden table: the gradient of ``compute_policy_loss_rlsd`` of that repository, by autograd.
    Limits: there π_T is a snapshot of the policy, renewed each 10 steps, and the ratio is against the policy of the
        pass, which is π_old in the first update of a rollout batch. The code is a later paper's reading of RLSD.
    """
    share = strength * max(1.0 - step / decay_steps, 0.0) if decay_steps > 0 else strength
    evidence = (advantages.sign() * (teacher_logps - old_logps)).exp().clamp(1.0 - max_change, 1.0 + max_change)
    return (1.0 - share) + share * evidence


def rlcsd(
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    teacher_contrast: Float[Tensor, "B T"],
    *,
    temperature: Positive = 0.02,
    strength: NotNegative = 0.5,
    threshold: NotNegative = 0.02,
    selected_weight: NotNegative = 1.0,
) -> Float[Tensor, "B T"]:
    """RLCSD: tokens to which right and wrong siblings' solutions speak differently are pushed by how they differ.

    ``r_{i,t} = λ tanh(e_{i,t} / τ)``, e how much likelier the token is to the policy after a right sibling's response
    than after wrong ones' (`teacher_contrast`), τ = ``temperature``, λ = ``strength``. Tokens of which |r| is above
    δ = ``threshold`` train ``A + r``, clamped so that the sign of A stays; the others train A. A row's loss is the mean
    over the others plus η = ``selected_weight`` times the mean over these:

    ``w_{i,t} = η (n_i / |M_i|) max(1 + r_{i,t} / A_{i,t}, 0)`` for t in M_i, the tokens of that kind, and
    ``n_i / |U_i|`` for the others U_i, of n_i tokens in the row.

    Rows without a right or without a wrong sibling weigh 1. The mean over rows is of a loss that divides each row by
    its tokens (``trl.loss_type: grpo``); ``dapo`` gives long rows more.

    Source: RLCSD (arXiv 2606.11709, Eqs. 7 and 9 to 15, of which its code was read); τ, λ, δ and η of its scripts.
    Evidence: golden table: the gradient of the authors' ``compute_policy_loss_rlcsd``, by autograd, row by row.
    Limits: there the two means run over a micro-batch, here over the row, as ports of the paper read Eq. 15; the
        teacher is a snapshot of the policy, renewed each 10 steps, here the policy that sampled; a row without siblings
        is dropped. The clip of r to ±2 is left out: λ is below it.
    """
    push = strength * (teacher_contrast / temperature).tanh()
    selected = (push.abs() > threshold) & mask.bool()
    others = mask.bool() & ~selected
    length = mask.sum(1, keepdim=True)
    pushed = (1.0 + push / advantages.where(advantages != 0.0, torch.inf)).clamp(min=0.0)
    of_selected = selected_weight * pushed * length / selected.sum(1, keepdim=True).clamp(min=1)
    return torch.where(selected, of_selected, length / others.sum(1, keepdim=True).clamp(min=1))
