"""Which tokens of a wrong answer its repair edited."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from rapidfuzz.distance import Levenshtein
from torch import Tensor

from trainer.algorithms.revisions.options import Credit


def edit_mask(completion: Sequence[int], revision: Sequence[int]) -> Bool[Tensor, "T"]:
    """``m_t = 1[t ∉ U]``, U the tokens of ``completion`` that a Levenshtein alignment with ``revision`` keeps.

    True on replaced and deleted tokens; all False for the same sequences, and where the revision only inserts: U is
    about the tokens of the completion, and such a one has no wrong token.

    The alignment is rapidfuzz's, bit-parallel: O(T·R/64) steps.

    Source: arXiv 2605.16302; the same alignment in IOP, 2605.05226.
    """
    edited = torch.zeros(len(completion), dtype=torch.bool)
    for operation in Levenshtein.editops(completion, revision):
        if operation.tag != "insert":
            edited[operation.src_pos] = True
    return edited


def credited_tokens(
    completion: Sequence[int], repairs: Sequence[Sequence[int]], credit: Credit = "fewest_edits"
) -> Bool[Tensor, "T"]:
    """Where a wrong answer is credited, given its successful revisions; everywhere if there are none.

    Ours, as no source says which of several repairs counts: ``fewest_edits`` takes the one nearest to the completion,
    the first of equals (IOP's argmax of ``r − λ_edit·edit`` among right ones); ``any_edit`` what any of them edited.
    """
    if not repairs:
        return torch.ones(len(completion), dtype=torch.bool)
    if credit == "fewest_edits":
        return edit_mask(completion, min(repairs, key=lambda repair: Levenshtein.distance(completion, repair)))
    return torch.stack([edit_mask(completion, repair) for repair in repairs]).any(0)
