"""Sampling with noise from keys instead of a random stream: common random numbers for policies that are compared.

Two policies that draw with the same keys differ only where their probabilities do, and a draw does not depend on how
many rows, processes or tokens came before. R rows, V words.
"""

import hashlib
from array import array
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

# odd, near 2^64 / golden ratio: consecutive counters lie far apart
_GAMMA = 0x9E3779B97F4A7C15
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SHIFTS = (30, 27, 31)
_BITS = 40
_LARGEST = 1 - 2**-24  # the float32 below 1


def row_key(seed: int, batch: int, prompt_ids: Sequence[int], sample: int) -> int:
    """A signed number of 64 bits for one completion: which run, rollout batch, prompt and sample of it (BLAKE2b).

    The prompt enters by its tokens, so that neither its place in a batch nor padding matters. ``batch`` and ``sample``
    may be any 64-bit integers.
    """
    written = array("q", [seed, batch, sample, *prompt_ids]).tobytes()
    return int.from_bytes(hashlib.blake2b(written, digest_size=8).digest(), "little", signed=True)


def keyed_exponentials(keys: Int[Tensor, "R"], position: int, vocabulary: int) -> Float[Tensor, "R V"]:
    """Exp(1) noise for every word at one position of each row, float32 on the keys' device.

    ``−log(1 − u)``, with u ∈ (0, 1) from 40 random bits (`keyed_bits`): fine-grained near 0, where the smallest of many
    draws is. Cut off above at 16.6 (probability 6e-8).

    Args:
        keys: int64, one for each row (`row_key`).
        position: tokens that the rows have drawn before.
    """
    bits = keyed_bits(keys, position, vocabulary, _BITS)
    uniform = ((bits.float() + 0.5) * 2.0**-_BITS).clamp(max=_LARGEST)
    return -torch.log1p(-uniform)


def keyed_bits(keys: Int[Tensor, "R"], stream: int, count: int, num_bits: int) -> Int[Tensor, "R count"]:
    """``count`` random integers in [0, 2^num_bits) for each key and ``stream``, on the keys' device without a wait.

    Integer v is the upper bits of output ``v + 1`` of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
    number generators", OOPSLA 2014) started at a mixture of key and stream.
    """
    start = _mixed(keys + _wrapped((stream + 1) * _GAMMA))
    places = torch.arange(1, count + 1, device=keys.device) * _wrapped(_GAMMA)
    return _shifted(_mixed(start[:, None] + places), 64 - num_bits)


def keyed_draw(probs: Float[Tensor, "R V"], keys: Int[Tensor, "R"], position: int) -> Int[Tensor, "R"]:
    """One word for each row with the probabilities given: ``argmax p_v / E_v``.

    The same as ``argmax log p_v + G_v`` with Gumbel noise ``G = −log E`` (the Gumbel-max trick; Maddison, Tarlow and
    Minka, arXiv 1411.0030). Two policies that share keys draw different words with probability at most
    ``2 d / (1 + d)``, d their total variation distance (Bavarian et al., arXiv 1612.01041). A word of probability 0 is
    never drawn.
    """
    return (probs / keyed_exponentials(keys, position, probs.shape[1])).argmax(-1)


def _mixed(state: Tensor) -> Tensor:
    """SplitMix64's finalizer of int64, which wraps as unsigned numbers do."""
    first, second, last = _SHIFTS
    state = (state ^ _shifted(state, first)) * _wrapped(_MULTIPLIERS[0])
    state = (state ^ _shifted(state, second)) * _wrapped(_MULTIPLIERS[1])
    return state ^ _shifted(state, last)


def _shifted(state: Tensor, bits: int) -> Tensor:
    """Logical shift to the right; torch's own shift repeats the sign."""
    return (state >> bits) & ((1 << (64 - bits)) - 1)


def _wrapped(number: int) -> int:
    """The signed number with the same lower 64 bits."""
    return (number + 2**63) % 2**64 - 2**63
