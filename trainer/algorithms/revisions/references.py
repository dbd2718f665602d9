"""Which siblings a wrong answer is compared with."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def references(
    correct: Float[Tensor, "N"], group_size: int, count: int, seed: int, *, need_correct: bool = True
) -> Int[Tensor, "N count"]:
    """Rows of the ``count`` = K − 1 siblings that each wrong answer is revised against; −1 = none.

    Siblings are the other judged rows of the group: right ones first, then wrong ones, in an order drawn from ``seed``.
    Rows that are right (1) or unjudged (NaN) are not revised; a group with fewer siblings fills up with −1.

    Args:
        correct: 1 right, 0 wrong, NaN unjudged; a group's rows are adjacent.
        count: K − 1, between 1 and ``group_size − 1``.
        seed: the same seed draws the same references, on whatever rank or device.
        need_correct: ours. Wrong answers of a group without a right one are left alone.

    Source: arXiv 2605.16302: K − 1 references of the group, correct ones preferred. K is not published; at K = 1, no
    reference, its authors see a collapse (AIME25 85.3 → 78.6).

    Raises:
        ValueError: ``count`` does not fit the group.
    """
    if not 1 <= count < group_size:
        raise ValueError(
            f"{count} references in a group of {group_size}: an answer has {group_size - 1} siblings and needs one at "
            f"least. Write references between 1 and {group_size - 1}, or raise num_generations."
        )
    verdicts = correct.cpu().view(-1, group_size)
    groups = len(verdicts)
    drawn = torch.rand(groups, group_size, group_size, generator=torch.Generator().manual_seed(seed))
    itself = torch.eye(group_size, dtype=torch.bool)
    excluded = verdicts.isnan()[:, None, :] | itself | (verdicts != 0)[:, :, None]
    if need_correct:
        excluded = excluded | ~(verdicts == 1).any(1)[:, None, None]
    place = (drawn + (verdicts != 1)[:, None, :]).masked_fill(excluded, torch.inf)  # right in [0, 1), wrong in [1, 2)
    siblings = place.argsort(-1)[..., :count]
    first_row = (torch.arange(groups) * group_size)[:, None, None]
    rows = (first_row + siblings).masked_fill(excluded.gather(-1, siblings), -1)
    return rows.view(-1, count).to(correct.device)
