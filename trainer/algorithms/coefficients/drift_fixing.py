"""Drift Fixing Policy Optimization (DFPO), arXiv 2604.13088 v1: trajectory ratios whose group contributions cancel.

The gradient is ``(1/D) Σ_i sg[w̃_i] A_i Σ_t ∇log π_{i,t}`` without any clip, D one token denominator for the step, and
w̃ transformed from the trajectory ratios of the current policy at every micro-step. In the first update of a rollout
batch w is constant; with advantages that sum to 0 over a group both transforms then do nothing, and the update is
REINFORCE with A.

``length_normalization="inside"`` keeps GSPO's 1/L_i and transforms ``w_i / L_i``. Transforming w_i and dividing after
would not cancel, so it is not offered: for w = (2, 1, 1, 1), A = (1, 1, −1, −1) and L = (4, 4, 4, 2), the smallest w
divided by L leaves Σ w̃A/L = −0.25. The coefficients, and with them the gradient, become about L times smaller.
"""

from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.contract import traits
from evenkeel.trainer.algorithms.sequence_weights import RatioForm, adv_orthogonal, min_replace, trajectory_ratios

LengthNormalization = Literal["none", "inside"]


@traits(needs_whole_groups="forward", needs_sequence_advantages=True, cancels_shared_tokens=True)
def dfpo_min_replace(
    log_ratio: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    groups: Int[Tensor, "B"],
    scored: Bool[Tensor, "B"],
    *,
    weight: RatioForm = "product",
    length_normalization: LengthNormalization = "none",
) -> Float[Tensor, "B 1"]:
    """DFPO, Min-Replace: every trajectory of a group weighs what its smallest importance ratio weighs.

    ``c_i = min_{j in group} w_j``, (B, 1) > 0, with ``w_i = Π_t ρ_{i,t}`` (``weight="product"``) or its geometric mean
    (``"geometric"``, GSPO's). With ``length_normalization="inside"``, w_i / L_i takes the place of w_i. Unscored rows
    and rows without tokens are left out of the minimum; a group without signal keeps its w (its advantages are 0).

    Tokens that a whole group shares cancel exactly where the advantages of the group sum to 0.

    Source: arXiv 2604.13088 v1, Eq. 17.
    Evidence: two independent digests of the paper agree on the equation; no code was published. Checked here against
    the two-trajectory toy of its Prop. 3.1 and a hand-written estimator.
    Limits: which ratio the paper means by w, whether it keeps 1/L, and its clipping of w are not known, hence the
    options. The minimum shrinks the step (to .63 of the mean weight at sd(log w) = .3, G = 8): compare it with a
    control of matched learning rate. Rounding shrinks it too: noise of .01 a token in log ρ (assumed for bfloat16)
    makes the product form .64 of what it is over 1,000 tokens and .35 over 8,000, the geometric one 1.00
    (docs/devices.md). The first step of a rollout batch has none, for there ρ is exactly 1; the later ones have. Where
    responses drop out of the loss (truncation), Σ A of the others is not 0.
    """
    weights = _trajectory_weights(log_ratio, mask, weight, length_normalization)
    return min_replace(weights, advantages[:, 0], groups, scored & mask.bool().any(1)).unsqueeze(1)


@traits(needs_whole_groups="forward", needs_sequence_advantages=True, cancels_shared_tokens=True)
def dfpo_orthogonal(
    log_ratio: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    groups: Int[Tensor, "B"],
    scored: Bool[Tensor, "B"],
    *,
    weight: RatioForm = "product",
    length_normalization: LengthNormalization = "none",
) -> Float[Tensor, "B 1"]:
    """DFPO, Adv-Orthogonal: a group's importance ratios without their component along its advantages.

    ``c = w − (Aᵀw / ‖A‖²) A`` over the group's scored rows, (B, 1), with w as in `dfpo_min_replace`. For any advantages
    ``Σ_i c_i A_i = 0``, and where they sum to 0 ``Σ_i c_i = Σ_i w_i``. A negative coefficient trains its trajectory
    against its advantage; the share of such tokens is logged as ``coefficient/frac_negative``. Unscored rows and rows
    without tokens are left out of Aᵀw; a group without signal keeps its w.

    Source: arXiv 2604.13088 v1, Eq. 18.
    Evidence: two independent digests of the paper agree on the equation; no code was published. Checked here against
    the two-trajectory toy of its Prop. 3.1 and a hand-written estimator.
    Limits: which ratio the paper means by w, whether it keeps 1/L, and its clipping of w are not known, hence the
    options. Negative coefficients: none up to sd(log w) = .3, 6 % at 1 (simulated, G = 8, binary rewards). Noise of .01
    a token in log ρ (assumed for bfloat16) makes the product form 1.05 times as large over 1,000 tokens, cosine .96,
    and 1.54 over 8,000, cosine .72; the geometric one stays 1.00 (docs/devices.md). Advantages without a group baseline
    lose their mean too, even on-policy: right and wrong answers are then only compared.
    """
    weights = _trajectory_weights(log_ratio, mask, weight, length_normalization)
    return adv_orthogonal(weights, advantages[:, 0], groups, scored & mask.bool().any(1)).unsqueeze(1)


def _trajectory_weights(
    log_ratio: Float[Tensor, "B T"], mask: Int[Tensor, "B T"], weight: RatioForm, normalization: LengthNormalization
) -> Float[Tensor, "B"]:
    weights = trajectory_ratios(log_ratio, mask, weight)
    return weights / mask.sum(1).clamp(min=1) if normalization == "inside" else weights
