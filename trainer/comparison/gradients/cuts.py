"""A group cut into passes of like length, so that little padding is differentiated again and again."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

_LIKE = 0.7
"""Of a pass's longest row, prompt included: what a row must reach to go with it."""


def cuts(
    completion_ids: Int[Tensor, "G L"], contributions: Float[Tensor, "S G L"], prompt_length: int
) -> list[tuple[Tensor, Tensor]]:
    """Completions and contributions of each pass, which together have the group's gradients for all S estimators.

    A row ends where nothing contributes any more, for what stands behind cannot change a gradient. Rows of the same
    tokens become one, with the sum of their contributions. Rows go together, longest first, while each is at least
    `_LIKE` times as long as the first. A group without contributions has no pass.
    """
    alike: dict[tuple[int, ...], Tensor] = {}
    for ids, contributed in zip(completion_ids.tolist(), contributions.unbind(1), strict=True):
        counted = contributed.any(0).nonzero()
        if len(counted):
            length = int(counted.max()) + 1
            tokens = tuple(ids[:length])
            alike[tokens] = alike[tokens] + contributed[:, :length] if tokens in alike else contributed[:, :length]
    passes: list[list[tuple[int, ...]]] = []
    for tokens in sorted(alike, key=len, reverse=True):
        if not passes or prompt_length + len(tokens) < _LIKE * (prompt_length + len(passes[-1][0])):
            passes.append([])
        passes[-1].append(tokens)
    return [_padded(rows, alike) for rows in passes]


def _padded(rows: list[tuple[int, ...]], contributions: dict[tuple[int, ...], Tensor]) -> tuple[Tensor, Tensor]:
    longest = len(rows[0])
    ids = torch.tensor([[*tokens, *[0] * (longest - len(tokens))] for tokens in rows])
    padded = [torch.nn.functional.pad(contributions[tokens], (0, longest - len(tokens))) for tokens in rows]
    return ids, torch.stack(padded, dim=1)
