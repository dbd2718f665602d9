"""BNPO: the group's advantage divided by the density of its pass rate."""

from jaxtyping import Float
from torch import Tensor
from torch.distributions import Beta

from evenkeel.trainer.algorithms.contract import traits
from evenkeel.trainer.algorithms.groups import finished, group_mean

LARGEST_WEIGHT = 1e6
"""What 1/density is clamped to (the authors' value)."""


@traits(depends_on_other_groups=True)
def bnpo_beta(
    rewards: Float[Tensor, "N"], group_size: int, *, lowest: float = 0.0, highest: float = 1.0
) -> Float[Tensor, "N"]:
    """Centered rewards divided by the Beta density of the group's pass rate, fitted to the batch.

    With rewards mapped to [0, 1], p the mean of a group, m and v (ddof = 1) mean and variance of p over the groups:
    ``a = (m(1−m)/v − 1)m``, ``b = (m(1−m)/v − 1)(1−m)``, ``α = max(1, 1 + a/3)``, ``β = max(1, 1 + b/3)``,
    ``A_i = (r_i − p) / Beta(p; α, β)``. α = β = 1 where fewer than two groups are scored or all have the same p.

    Not TRL's ``loss_type: bnpo``, which is a mean over the tokens of a micro-batch.

    Raises:
        ValueError: a group's mean reward is not within lowest and highest.

    Source: BNPO (arXiv 2506.02864).
    Evidence: golden table from running the authors' ``compute_bnpo_outcome_advantage``.
    Limits: for one reward; the sum over several normalized rewards of the paper is not here.
    """
    unit = (rewards - lowest) / (highest - lowest)
    pass_rates = group_mean(unit, group_size)
    known = pass_rates[::group_size]
    known = known[~known.isnan()]
    if lowest >= highest or bool(((known < 0) | (known > 1)).any()):
        raise ValueError(
            f"bnpo_beta: a group's mean reward is not within lowest = {lowest:g} and highest = {highest:g}. Write the "
            "least and the greatest reward that a response can earn."
        )
    # the rate of an unscored group is NaN
    fitted = Beta(*_fitted_beta(known), validate_args=False)
    density = fitted.log_prob(pass_rates).exp()
    advantages = (unit - pass_rates) * (1 / density).clamp(max=LARGEST_WEIGHT)
    return finished(advantages, rewards, group_size)


def _fitted_beta(pass_rates: Tensor) -> tuple[Tensor, Tensor]:
    """(α, β) by the method of moments, shrunk by a third and at least 1."""
    one = pass_rates.new_tensor(1.0)
    if pass_rates.numel() < 2 or bool(pass_rates.min() == pass_rates.max()):
        return one, one
    mean, variance = pass_rates.mean(), pass_rates.var()
    concentration = mean * (1 - mean) / variance - 1
    alpha, beta = 1 + concentration * mean / 3, 1 + concentration * (1 - mean) / 3
    return alpha.clamp(min=1), beta.clamp(min=1)
