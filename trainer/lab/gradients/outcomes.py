"""What an update does to the probabilities of tokens, by quarter of π_old: figures 1 and 3 of arXiv 2505.12929.

Shares and means are kept as sums, (2, K) numerators and denominators, so that those of several updates can be added;
`ratio` divides them. N rows, T tokens, K = 5 sets of tokens.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.diagnostics import probability_bins

SETS = ("all", "0–¼", "¼–½", "½–¾", "¾–1")
"""All tokens that the loss counts, and those by π_old; a quarter includes its lower edge."""
Values = Float[Tensor, "N T"]
Mask = Int[Tensor, "N T"]
Sums = Float[Tensor, "2 K"]


def token_sets(old: Values, mask: Mask) -> Bool[Tensor, "K N T"]:
    """Which tokens are in each of `SETS`."""
    return torch.stack([mask.bool(), *probability_bins(old, mask).unbind(-1)])


def ratio(sums: Sums) -> Float[Tensor, "K"]:
    """The shares or means that sums (…, 2, K) stand for; NaN where a set is empty."""
    return sums[..., 0, :] / sums[..., 1, :]


def mean_of(values: Values, old: Values, mask: Mask) -> Sums:
    """The mean over each set, such as that of |π_new − π_old| (figures 1c, 1e, 1f) or of |A| (1b)."""
    sets = token_sets(old, mask).double()
    return torch.stack([(sets * values).sum((1, 2)), sets.sum((1, 2))])


def rose_share(old: Values, new: Values, advantages: Values, mask: Mask) -> Sums:
    """The share of tokens with A > 0 whose probability rose: ``Σ 1[A > 0, π_new > π_old] / Σ 1[A > 0]``.

    One that stays as it is has not risen. ``old`` and ``new`` need double precision where steps are small.

    Source: arXiv 2505.12929, figure 3.
    """
    return mean_of(new > old, old, mask * (advantages > 0))


def frozen_move(old: Values, part: Values, full: Values, frozen: Mask) -> Sums:
    """How far frozen tokens move, relative to an update by all: ``Σ |π_part − π_old| / Σ |π_full − π_old|``.

    ``part`` is after an update by all tokens but the frozen ones, ``full`` after one by all. 1: they move as far as if
    everything were trained; 0: not at all.

    Source: arXiv 2505.12929, figures 1e and 1f against 1c.
    """
    return torch.stack([mean_of((new - old).abs(), old, frozen)[0] for new in (part, full)])


def gradient_norm_share(norms: Float[Tensor, "K"]) -> Sums:
    """``‖g_set‖ / ‖g_all‖`` of the gradients by the tokens of each set alone. The quarters do not add up to 1.

    Source: arXiv 2505.12929, figure 1d: .715, .355, .235 and .148 against .82.
    """
    return torch.stack([norms, norms[:1].expand(len(norms))])
