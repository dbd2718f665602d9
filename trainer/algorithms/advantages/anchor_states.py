"""GiGPO: turns are compared where the environment was in the same state."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import dr_grpo, grpo
from evenkeel.trainer.algorithms.contract import NotNegative, Share, traits
from evenkeel.trainer.algorithms.turns import of_tokens, turn_returns


@traits(trains_dead_groups=True)
def gigpo(
    rewards: Float[Tensor, "N"],
    group_size: int,
    turns: Int[Tensor, "N T"],
    turn_rewards: Float[Tensor, "N K"],
    state_keys: Int[Tensor, "N K"],
    *,
    step_weight: NotNegative = 1.0,
    gamma: Share = 0.95,
    normalize: Literal["mean", "mean_std"] = "mean",
    episodes_count: Literal["each_turn", "once"] = "each_turn",
) -> Float[Tensor, "N T"]:
    """GiGPO: the whole episode against the group's, plus each turn against the turns that began in the same state.

    ``A_{i,t} = A^E_i + ω A^S_{i,k}`` on the tokens of turn k, 0 on inserted ones; ω is ``step_weight``.

    - ``A^E``: ``r_i + Σ_k r_{i,k}`` (outcome and all turns) against the group, where an episode counts as often as it
      has turns, or ``once``;
    - ``A^S``: ``R_{i,k} = Σ_{l ≥ k} γ^{l−k} r_{i,l}``, the outcome added to the last turn, against the turns of the
      group whose ``state_keys`` are equal, its own row's too.

    Against a set means centered by its mean (``mean``) and divided by its std + ε, ddof = 1 (``mean_std``). A turn that
    is alone in its state, or whose state is not known, has ``A^S = 0``. A set of equal returns gets zeros; a group of
    equal outcomes still teaches where its turns differ. With one turn a row and equal states it is
    ``(1 + ω)`` times `dr_grpo` or `grpo`.

    Source: GiGPO (arXiv 2505.10978), Eq. 3 and 5 to 8 as the authors' code numbers them; its defaults, γ of a script.
    Evidence: golden table from running the authors' ``compute_gigpo_outcome_advantage`` and, for ``once``,
        ``episode_norm_reward``.
    Limits: ``each_turn`` is the default of the authors' code, which calls ``once`` the standard form. A turn that is
        alone in its group keeps its raw reward there, and gets 0 here. Their option of joining states that are
        similar is not offered: a key is equal or it is not.
    """
    relative = grpo if normalize == "mean_std" else dr_grpo
    rows, most_turns = turn_rewards.shape
    returns = turn_returns(rewards, turn_rewards, gamma)
    episodes = rewards + turn_rewards.nansum(1)
    if episodes_count == "once":
        episode_advantages = relative(episodes, group_size)[:, None].expand(rows, most_turns)
    else:
        repeated = episodes[:, None].expand(rows, most_turns).masked_fill(returns.isnan(), torch.nan)
        episode_advantages = relative(repeated.flatten(), group_size * most_turns).view(rows, most_turns)
    # turns of a group; row i of `anchored` holds those in the state of turn i
    together = group_size * most_turns
    keys = state_keys.reshape(-1, together)
    in_one_state = (keys[:, :, None] == keys[:, None]) & (keys >= 0)[:, None]
    anchored = returns.view(-1, 1, together).expand(in_one_state.shape)
    anchored = anchored.masked_fill(~in_one_state, torch.nan)
    compared = relative(anchored.flatten(), together).view(in_one_state.shape)
    step_advantages = compared.diagonal(dim1=1, dim2=2).reshape(rows, most_turns).nan_to_num()
    return of_tokens(episode_advantages + step_weight * step_advantages, turns, rewards)
