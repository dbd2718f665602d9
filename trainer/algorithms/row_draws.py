"""Random numbers that belong to a row: a function of a seed and of what the row holds, not of the batch around it."""

import hashlib

import torch
from jaxtyping import Float, Int
from torch import Tensor


def row_draws(content: Float[Tensor, "B T"], mask: Int[Tensor, "B T"], seed: int) -> Float[Tensor, "B T"]:
    """Uniform draws in [0, 1), one per token that counts, +∞ elsewhere; float64 on the content's device.

    Row i's draws are a function of ``seed`` and of the values of ``content`` at its tokens that count, in their order.
    So they are the same however rows are cut into micro-batches, shuffled over ranks or padded, and the global random
    state is neither read nor moved. Rows of equal content draw equally.
    """
    draws = torch.full(content.shape, torch.inf, dtype=torch.float64)
    for row, values, valid in zip(draws, content.double().cpu(), mask.bool().cpu(), strict=True):
        digest = hashlib.blake2b(f"{seed}:".encode() + values[valid].numpy().tobytes(), digest_size=7).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "big"))
        row[valid] = torch.rand(int(valid.sum()), generator=generator, dtype=torch.float64)
    return draws.to(content.device)
