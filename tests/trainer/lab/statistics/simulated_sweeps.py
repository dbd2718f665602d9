"""Sweeps whose truth is known: right and wrong answers of variants over seeds and items."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit


def answers(
    rng: np.random.Generator,
    *,
    sweeps: int,
    seeds: int,
    items: int = 256,
    accuracy: float = 0.85,
    seed_sd: float = 0.25,
    own_items_sd: float = 0.0,
    effect: float = 0.0,
    others: int = 1,
) -> list[NDArray[np.float64]]:
    """A variant and ``others``, each (sweeps, seeds, items) of 0 and 1.

    Items are of Beta-distributed difficulty, shared by all; on the logit scale a seed shifts all items of its run
    (0.25: about 0.025 of accuracy at 0.85, as seeds of the quickstart differ), ``own_items_sd`` shifts an item in
    one variant for all its seeds, ``effect`` everything of the variant.
    """
    difficulty = logit(rng.beta(2 * accuracy, 2 * (1 - accuracy), size=(sweeps, 1, items)).clip(1e-4, 1 - 1e-4))

    def variant(shift: float) -> NDArray[np.float64]:
        of_seed = rng.normal(0, seed_sd, (sweeps, seeds, 1))
        of_item = rng.normal(0, own_items_sd, (sweeps, 1, items))
        return (rng.random((sweeps, seeds, items)) < expit(difficulty + of_seed + of_item + shift)).astype(float)

    return [variant(shift) for shift in (effect, *[0.0] * others)]
