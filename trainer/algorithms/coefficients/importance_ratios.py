"""Importance ratios as coefficients, without the advantage's sign: clip-free, capped for all alike, of a trajectory."""

from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.contract import AtLeastOne, NotNegative, Share, traits
from evenkeel.trainer.algorithms.sequence_weights import LOG_RATIO_BOUND, RatioForm, trajectory_ratios


def importance_ratio(log_ratio: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """The token's importance ratio, not clipped.

    ``c_{i,t} = ρ_{i,t} = π / π_old``, (B, T) > 0; log ρ is held within ± 20, so that no coefficient is infinite. A
    token that a group shares in the same context has the same ρ in all of it, so its contributions cancel where the
    advantages do. It is the gradient of PPO's objective inside its clip range.

    Source: arXiv 2402.03300 (GRPO's objective with the clip left out).
    Evidence: equal to TRL 1.16's ``dapo`` inside its clip range on a real model, token by token.
    Limits: nothing bounds the step; meant as a control.
    """
    return log_ratio.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp()


def symmetric_clip(log_ratio: Float[Tensor, "B T"], *, cap: AtLeastOne = 5.0) -> Float[Tensor, "B T"]:
    """The token's importance ratio, capped for both signs of the advantage alike.

    ``c_{i,t} = min(ρ_{i,t}, cap)``, (B, T) in (0, cap]. Unlike PPO's clip, which drops a shared token for some members
    of a group and keeps it for others, the cap does not look at the advantage: shared tokens still cancel. TRL's
    ``cispo`` with ``epsilon_high: cap``.

    Source: arXiv 2506.13585 (CISPO, upper cap only), in TRL 1.16's reading: an absolute cap.
    Evidence: equal to TRL 1.16's ``cispo`` on a real model, token by token.
    Limits: the paper gives no number for its cap; 5 is the one that TRL's documentation recommends for cispo.
    """
    return importance_ratio(log_ratio).clamp(max=cap)


def grpo_fix(
    log_ratio: Float[Tensor, "B T"], *, epsilon_low: Share = 0.2, epsilon_high: NotNegative = 0.2
) -> Float[Tensor, "B T"]:
    """The token's importance ratio inside GRPO's clip range, and 0 outside of it for both signs of the advantage.

    ``c_{i,t} = ρ_{i,t} · 1[1 − ε_low ≤ ρ_{i,t} ≤ 1 + ε_high]``, (B, T) ≥ 0. PPO's clip drops a token above the range
    where A > 0 and below it where A < 0. Here a token that a group shares in the same context is dropped for all of the
    group or for none, so shared tokens still cancel.

    Source: arXiv 2604.13088 v1, its arm GRPO-fix ("no clipping asymmetry"), as digests of the paper describe it.
    Evidence: by hand.
    Limits: the formula is our reading; no code and no numbers of ε are published. Defaults are GRPO's.
    """
    ratio = importance_ratio(log_ratio)
    inside = (ratio >= 1 - epsilon_low) & (ratio <= 1 + epsilon_high)
    return ratio * inside


@traits(needs_sequence_advantages=True)
def trajectory_ratio(
    log_ratio: Float[Tensor, "B T"], mask: Int[Tensor, "B T"], *, weight: RatioForm = "geometric"
) -> Float[Tensor, "B 1"]:
    """The trajectory's importance ratio for all of its tokens, not clipped.

    ``c_i = exp((1/L_i) Σ_t log ρ_{i,t})`` (``weight="geometric"``, GSPO's) or ``Π_t ρ_{i,t}`` (``"product"``),
    (B, 1) > 0. What DFPO transforms: the control that shows what its transforms change. Tokens that a group shares do
    **not** cancel under it once the policy has moved.

    Source: arXiv 2507.18071 (GSPO's ratio), without its clip.
    Evidence: by hand; arXiv 2604.13088 v1, Cor. 3.3 for what it breaks.
    Limits: nothing bounds the step; meant as a control. Noise of .01 a token in log ρ (assumed for bfloat16) makes the
    product form 1.05 times as large over 1,000 tokens, cosine .95 with the update without noise, and 1.53 over 8,000,
    cosine .67; the geometric one stays 1.00 (docs/devices.md).
    """
    return trajectory_ratios(log_ratio, mask, weight).unsqueeze(1)
