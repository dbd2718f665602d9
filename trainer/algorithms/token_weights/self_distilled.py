"""Token weights from what the policy thinks of its own tokens once it is shown the answer (RLSD)."""

from jaxtyping import Float
from torch import Tensor


def rlsd(
    advantages: Float[Tensor, "B T"],
    old_logps: Float[Tensor, "B T"],
    teacher_logps: Float[Tensor, "B T"],
    step: int,
    *,
    strength: float = 0.5,
    max_change: float = 0.2,
    decay_steps: int = 0,
) -> Float[Tensor, "B T"]:
    """RLSD: tokens that the answer makes likelier weigh more in good responses and less in bad ones.

    ``w_{i,t} = (1 − λ) + λ clip((π_T / π_old)^sign(A), 1 − ε, 1 + ε)``, π_T the policy behind a prompt that shows the
    answer (`teacher_logps`), λ = ``strength``, ε = ``max_change``. The verifier's reward says which way a response is
    pushed, the teacher only how far each token. With ``decay_steps`` λ falls linearly to 0 in so many optimizer steps;
    the authors' scripts write 50.

    Source: RLSD (arXiv 2604.03128), as THU-BPM/RLCSD writes it; λ and ε of its scripts.
    Evidence: golden table: the gradient of ``compute_policy_loss_rlsd`` of that repository, by autograd.
    Limits: there π_T is a snapshot of the policy, renewed each 10 steps, and the ratio is against the policy of the
        pass, which is π_old in the first update of a rollout batch. The code is a later paper's reading of RLSD.

    Raises:
        ValueError: λ or ε outside [0, 1], where weights could be negative.
    """
    if not (0.0 <= strength <= 1.0 and 0.0 <= max_change <= 1.0):
        raise ValueError(
            f"rlsd: strength = {strength} and max_change = {max_change}, but outside [0, 1] a weight can be negative "
            "and turn the clip to the wrong side. Write both between 0 and 1; published: 0.5 and 0.2."
        )
    share = strength * max(1.0 - step / decay_steps, 0.0) if decay_steps > 0 else strength
    evidence = (advantages.sign() * (teacher_logps - old_logps)).exp().clamp(1.0 - max_change, 1.0 + max_change)
    return (1.0 - share) + share * evidence
