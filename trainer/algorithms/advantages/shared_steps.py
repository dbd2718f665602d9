"""GRPO as a process reward model: tokens that several responses share are one step."""

from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.groups import finished


def shared_step_grpo(
    rewards: Float[Tensor, "N"], group_size: int, completion_ids: Int[Tensor, "N T"]
) -> Float[Tensor, "N T"]:
    """GRPO with each token divided by the number of responses that share its step.

    ``A_{i,t} = grpo_i / |λ(i,t)|``, λ(i,t) the scored members of the group (i among them) whose first t + 1 tokens
    equal those of response i. A step counts once, however many responses went through it.

    Source: λ-GRPO of "GRPO is secretly a process reward model" (arXiv 2509.21154); named apart from `lambda_grpo`,
        another paper's.
    Evidence: golden table from running the authors' ``InfPRMTree.loss_scales``.
    Limits: the tokens of a response end with its end token, which no other continuation shares.
    """
    num_groups, length = len(rewards) // group_size, completion_ids.shape[1]
    ids = completion_ids.view(num_groups, group_size, length)
    scored = ~rewards.isnan().view(num_groups, 1, group_size, 1)
    shared = (ids[:, :, None] == ids[:, None]).long().cumprod(-1).bool() & scored  # (groups, G, G, T)
    sharers = shared.sum(2).view(len(rewards), length)
    return finished(grpo(rewards, group_size)[:, None] / sharers.clamp(min=1), rewards, group_size)
