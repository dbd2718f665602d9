"""Prompts of a teacher: the policy itself, shown the gold answer or siblings' responses."""

from typing import Annotated, Any

import torch
from jaxtyping import Float, Int
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError
from torch import Tensor

TEMPLATE = """{prompt}

The right answer is:
{reference}

Solve the problem in your own words, step by step, and arrive at this answer."""
SIBLING_TEMPLATE = """{prompt}

A solution of this problem:
{reference}

Make sure that you understand each step of it. Then solve the problem in your own words, step by step."""
"""The same text for right and wrong solutions, so that its effect on style cancels in their difference."""


def _shows_both(template: str) -> str:
    if "{prompt}" not in template or "{reference}" not in template:
        raise PydanticCustomError("template-of-a-teacher", "lacks {prompt} or {reference}. Write both.")
    return template


class TeacherOptions(BaseModel):
    """How completions are scored once more for the signals ``teacher_logps`` and ``teacher_contrast``."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)

    template: Annotated[str, AfterValidator(_shows_both)] = TEMPLATE
    """The teacher's prompt, with ``{prompt}`` and ``{reference}``. It takes the place of the prompt's last message (of
    the whole prompt where that is plain text). Other braces stay as they are.
    """
    sibling_template: Annotated[str, AfterValidator(_shows_both)] = SIBLING_TEMPLATE
    """The same for ``teacher_contrast``, where ``{reference}`` is a sibling's response, right or wrong."""
    wrong_siblings: Annotated[int, Field(ge=1)] = 4
    """Wrong siblings of a response that ``teacher_contrast`` shows at most, each in a pass of its own."""


def reference_text(reference: Any) -> str:
    """A gold answer as text for a teacher's prompt.

    Raises:
        ValueError: neither text nor a number; other references need not hold the answer.
    """
    text = str(reference).strip() if isinstance(reference, str | int | float) else ""
    if not text:
        raise ValueError(
            f"teacher_logps: a row's reference is {reference!r:.80}, and a teacher needs the gold answer as text. "
            "Name a column of answers (columns: {reference: answer})."
        )
    return text


def contrasted_siblings(
    correct: Float[Tensor, "N"], group_size: int, wrong: int, seed: int
) -> Int[Tensor, "N siblings"]:
    """For each row the rows of siblings that a teacher's prompts show: one right, then up to ``wrong`` wrong ones.

    Drawn from the row's group without the row itself; −1 = none. A row without a right or without a wrong sibling gets
    only −1.

    Args:
        correct: 1 right, 0 wrong, NaN unscored; a group's rows are adjacent.
        seed: the same seed draws the same siblings on any rank or device.
    """
    verdicts = correct.cpu().view(-1, group_size)
    drawn = torch.rand(len(verdicts), group_size, group_size, generator=torch.Generator().manual_seed(seed))
    first_row = (torch.arange(len(verdicts)) * group_size)[:, None, None]

    def chosen(verdict: float, count: int) -> Tensor:
        others = (verdicts == verdict)[:, None, :] & ~torch.eye(group_size, dtype=torch.bool)
        siblings = drawn.masked_fill(~others, torch.inf).argsort(-1)[..., :count]
        return (first_row + siblings).masked_fill(~others.gather(-1, siblings), -1).flatten(0, 1)

    rows = torch.cat([chosen(1.0, 1), chosen(0.0, wrong)], dim=1)
    return rows.masked_fill((rows[:, :2] < 0).any(1, keepdim=True), -1).to(correct.device)


def contrast(logps: Float[Tensor, "siblings B T"], siblings: Int[Tensor, "B siblings"]) -> Float[Tensor, "B T"]:
    """``log π_T(y_t | right) − log (1/K) Σ_k π_T(y_t | wrong k)``; 0 in rows without siblings.

    Args:
        logps: of the same tokens after each sibling's response; any number where there is no sibling.
        siblings: rows from `contrasted_siblings`.

    Source: RLCSD (arXiv 2606.11709, Eq. 7).
    """
    there = (siblings[:, 1:] >= 0).T.unsqueeze(-1)
    count = there.sum(0)
    mixture = logps[1:].masked_fill(~there, -torch.inf).logsumexp(0) - count.log()
    return torch.where(count > 0, logps[0] - mixture, 0.0)
