"""Low-probability token isolation (Lopti), arXiv 2505.12929."""

from functools import partial
from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.contract import OpenShare, UpdateSchedule
from evenkeel.trainer.algorithms.row_draws import row_draws


def lopti(
    *, eta: OpenShare = 0.4, order: Literal["low_first", "high_first", "random"] = "low_first", seed: int = 0
) -> UpdateSchedule:
    """Low-probability token isolation: pass 1 trains the tokens with ``π_old < η``, pass 2 those with ``π_old ≥ η``.

    Updating the rare tokens first lets the probable ones correct what that update did to them.

    - ``eta`` in (0, 1); the paper uses 0.3–0.5, 0.4 for Knights & Knaves (0.5 together with AR).
    - ``order="high_first"``: the reversed control that the paper reports as worse.
    - ``order="random"``: a control for the doubled number of optimizer steps: pass 1 trains, of each response, as many
      tokens as it has low-probability ones, drawn at random; pass 2 the rest. The draw is a function of ``seed`` and of
      which row of the run the response is: the same in both passes, however many processes there are and however they
      cut the batch. Two equal responses of a group are two rows, and drawn from apart. Not in the paper.

    Source: arXiv 2505.12929, Algorithm 1.
    Evidence: equal to the update of the authors' own code to 1.6e-6, alone and with AR.
    """
    if order == "random":
        return UpdateSchedule(2, partial(_random_split, eta=eta, seed=seed))
    return UpdateSchedule(2, partial(_probability_split, eta=eta, low_pass=0 if order == "low_first" else 1))


def _probability_split(
    probs: Float[Tensor, "B T"], mask: Int[Tensor, "B T"], pass_index: int, *, eta: float, low_pass: int
) -> Bool[Tensor, "B T"]:
    low = probs < eta
    return mask.bool() & (low if pass_index == low_pass else ~low)


def _random_split(
    probs: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    pass_index: int,
    row_keys: Int[Tensor, " B"],
    *,
    eta: float,
    seed: int,
) -> Bool[Tensor, "B T"]:
    valid = mask.bool()
    num_low = (valid & (probs < eta)).sum(1, keepdim=True)
    rank = row_draws(row_keys, mask, seed).argsort(dim=1, stable=True).argsort(dim=1)
    first = rank < num_low
    return valid & (first if pass_index == 0 else ~first)
