"""Revisions of wrong answers: the answers compared, the tokens that a repair edited, and scores of repairs.

The policy is shown a wrong answer y and a sibling reference y_ref, and writes a revision ŷ. `ibpo` uses the outcome;
trainer/step/other_prompts.py generates revisions.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError
from rapidfuzz.distance import Levenshtein
from torch import Tensor

Credit = Literal["fewest_edits", "any_edit"]

TEMPLATE = """{prompt}

This answer to it is wrong:
{answer}

Another answer to the same question, to compare it with:
{reference}

Find the first step that goes wrong, and write the wrong answer again with as few changes as make it right."""


def _knows_the_question(template: str) -> str:
    if "{prompt}" not in template:
        raise PydanticCustomError("template-without-prompt", "has no {prompt}. Write it where the question stands.")
    return template


class RevisionOptions(BaseModel):
    """How wrong answers are revised; no value is converted, no key is ignored."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)

    references: Annotated[int, Field(ge=1)] = 3
    """K − 1, how many siblings, and so revisions, a wrong answer gets; at most ``num_generations − 1``."""
    need_correct: bool = True
    """Wrong answers of a group without a right one are left alone."""
    credit: Credit = "fewest_edits"
    """Whose edits count where several revisions are right; see `credited_tokens`."""
    template: Annotated[str, AfterValidator(_knows_the_question)] = TEMPLATE
    """The revision prompt, with ``{prompt}``, and ``{answer}`` and ``{reference}`` where it shows them. It takes the
    place of the prompt's last message (of the whole prompt where that is plain text). Other braces stay as they are.
    """


def filled(template: str, **values: str) -> str:
    """``template`` with ``{name}`` of each value replaced, once: braces in what is filled in stay as they are."""
    return re.sub(rf"\{{({'|'.join(values)})\}}", lambda field: values[field[1]], template)


def references(
    correct: Float[Tensor, "N"], group_size: int, count: int, seed: int, *, need_correct: bool = True
) -> Int[Tensor, "N count"]:
    """Rows of the ``count`` = K − 1 siblings that each wrong answer is revised against; −1 = none.

    Siblings are the other scored rows of the group: right ones first, then wrong ones, in an order drawn from ``seed``.
    Rows that are right (1) or unscored (NaN) are not revised; a group with fewer siblings fills up with −1.

    Args:
        correct: 1 right, 0 wrong, NaN unscored; a group's rows are adjacent.
        count: K − 1, between 1 and ``group_size − 1``.
        seed: the same seed draws the same references on any rank or device.
        need_correct: ours. Wrong answers of a group without a right one are left alone.

    Source: arXiv 2605.16302: K − 1 references of the group, correct ones preferred. K is not published; at K = 1, no
    reference, its authors see a collapse (AIME25 85.3 → 78.6).

    Raises:
        ValueError: ``count`` does not fit the group.
    """
    if not 1 <= count < group_size:
        raise ValueError(f"references = {count} in a group of {group_size}. Write 1 to {group_size - 1}.")
    verdicts = correct.cpu().view(-1, group_size)
    groups = len(verdicts)
    drawn = torch.rand(groups, group_size, group_size, generator=torch.Generator().manual_seed(seed))
    itself = torch.eye(group_size, dtype=torch.bool)
    excluded = verdicts.isnan()[:, None, :] | itself | (verdicts != 0)[:, :, None]
    if need_correct:
        excluded = excluded | ~(verdicts == 1).any(1)[:, None, None]
    # right in [0, 1), wrong in [1, 2)
    place = (drawn + (verdicts != 1)[:, None, :]).masked_fill(excluded, torch.inf)
    siblings = place.argsort(-1)[..., :count]
    first_row = (torch.arange(groups) * group_size)[:, None, None]
    rows = (first_row + siblings).masked_fill(excluded.gather(-1, siblings), -1)
    return rows.view(-1, count).to(correct.device)


def edit_mask(completion: Sequence[int], revision: Sequence[int]) -> Bool[Tensor, "T"]:
    """``m_t = 1[t ∉ U]``, U the tokens of ``completion`` that a Levenshtein alignment with ``revision`` keeps.

    True on replaced and deleted tokens; all False for equal sequences, and where the revision only inserts, since then
    no token of the completion is wrong.

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
    """The tokens of a wrong answer to credit, given its successful revisions; all if there are none.

    Ours, as no source says which of several repairs counts: ``fewest_edits`` takes the one nearest to the completion,
    the first of equals (IOP's argmax of ``r − λ_edit·edit`` among right ones); ``any_edit`` the edits of all of them.
    """
    if not repairs:
        return torch.ones(len(completion), dtype=torch.bool)
    if credit == "fewest_edits":
        nearest = min(repairs, key=lambda repair: Levenshtein.distance(completion, repair))
        return edit_mask(completion, nearest)
    return torch.stack([edit_mask(completion, repair) for repair in repairs]).any(0)


def repair_scores(repaired: Float[Tensor, "N revisions"]) -> Float[Tensor, "N"]:
    """``φ_i = mean_k 1[r(ŷ_{i,k}) = 1]`` over the scored revisions of each row; 0 where there are none.

    ``repaired`` is 1 where the revision is right, 0 where it is wrong, NaN where it is missing or not scored.

    Ours: the paper (arXiv 2605.16302) says only that φ is 0 for right answers and in [0, 1] for wrong ones.
    """
    scored = ~repaired.isnan()
    return repaired.nan_to_num().sum(1) / scored.sum(1).clamp(min=1)
