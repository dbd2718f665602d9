"""Rewards as Labels (REAL), arXiv 2602.05630: what its classification loss makes of a policy that has moved."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.contract import Positive, traits
from evenkeel.trainer.algorithms.sequence_weights import LOG_RATIO_BOUND


@traits(needs_whole_groups="forward", needs_sequence_advantages=True)
def real(
    log_ratio: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    groups: Int[Tensor, "B"],
    scored: Bool[Tensor, "B"],
    *,
    tau: Positive = 0.5,
) -> Float[Tensor, "B 1"]:
    """REAL: right answers that the policy has raised weigh less and less, and so do wrong ones that it has lowered.

    With the score ``s_i = (1/L_i) Σ_t log ρ_{i,t}`` and, over the n responses of the group with the same sign of A,
    ``c_i = (1 + n) e^{∓s_i/τ} / (1 + Σ_j e^{∓s_j/τ})``, − where A > 0, + where A < 0. (B, 1) in [0, 1 + n], 1
    on-policy. Together with the advantage `real` of the same τ it is the gradient of the published loss,
    ``log(1 + Σ_wrong e^{s/τ}) + log(1 + Σ_right e^{−s/τ})``. Unscored rows, rows without tokens and those with A = 0
    are in no sum and keep 1.

    Source: REAL (arXiv 2602.05630); τ = 0.5 as in the authors' script.
    Evidence: golden table: the gradient of the authors' ``compute_policy_loss_real``, by autograd.
    Limits: s is held within ± 20.
    """
    counted = mask.bool()
    scores = (log_ratio * counted).double().sum(1) / counted.sum(1).clamp(min=1)
    signs = advantages[:, 0].sign()
    exponents = -signs * scores.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND) / tau
    present = scored & counted.any(1) & (signs != 0)
    alike = (groups[:, None] == groups) & (signs[:, None] == signs) & present
    total = exponents.masked_fill(~alike, -torch.inf).logsumexp(1)
    logs = alike.sum(1).log1p() + exponents - torch.logaddexp(total, torch.zeros_like(total))
    return logs.exp().where(present, 1.0).to(log_ratio.dtype).unsqueeze(1)
