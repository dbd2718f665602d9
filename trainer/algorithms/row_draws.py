"""Random numbers that belong to a row: a function of which row of the run it is, not of the batch around it."""

import hashlib

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.keyed_noise import keyed_bits


def row_keys(count: int, seed: int, rollout: int = 0) -> Int[Tensor, " N"]:
    """A number for each of the ``count`` rows of a rollout batch: their own, whatever they hold.

    A function of the arguments and of the row's place in the rollout batch of all processes: the same however many
    processes there are and however they cut it, and again in a resumed run. Nothing that was computed goes into it,
    whose last bits depend on the number of processes. Equal completions are different rows, so their keys differ.

    Args:
        seed: of the run.
        rollout: which rollout batch of the run it is.
    """
    generator = torch.Generator().manual_seed(_seed(seed, rollout))
    return torch.randint(2**62, (count,), generator=generator)


def row_draws(row_keys: Int[Tensor, " B"], mask: Int[Tensor, "B T"], seed: int) -> Float[Tensor, "B T"]:
    """Uniform draws in [0, 1), one per token that counts, +∞ elsewhere; float64 on the mask's device.

    The n-th draw of a row is a function of ``seed``, the row's key and n, counted over the tokens that count. So draws
    are the same however rows are cut into micro-batches, shuffled over ranks or padded; the global random state is
    neither read nor moved, and nothing waits for the device. Rows of equal keys draw equally.
    """
    counted = mask.bool()
    draws = keyed_bits(row_keys, seed, mask.shape[1], 53).double() * 2.0**-53
    places = (counted.long().cumsum(1) - 1).clamp(min=0)
    return torch.where(counted, draws.gather(1, places), torch.inf)


def _seed(*numbers: int) -> int:
    digest = hashlib.blake2b(":".join(map(str, numbers)).encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big")
