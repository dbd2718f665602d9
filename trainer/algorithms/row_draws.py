"""What a row keeps when its batch is cut: labels, and random numbers that depend on its number in the run alone."""

import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.diagnostics import shared_prefix_lengths
from evenkeel.trainer.algorithms.groups import dead_groups
from evenkeel.trainer.algorithms.keyed_noise import keyed_bits
from evenkeel.trainer.algorithms.registry import Strategy


def row_keys(count: int, seed: int, rollout: int = 0) -> Int[Tensor, " N"]:
    """A key for each of the ``count`` rows of a rollout batch, independent of their content.

    A function of the arguments and of the row's place in the rollout batch of all processes: the same for any number
    of processes and any cut, and in a resumed run. No computed value is used, since its last bits depend on the number
    of processes. Equal completions are different rows, so their keys differ.

    Args:
        seed: of the run.
        rollout: number of the rollout batch in the run.
    """
    digest = hashlib.blake2b(f"{seed}:{rollout}".encode(), digest_size=7).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest, "big"))
    return torch.randint(2**62, (count,), generator=generator)


def row_data(
    signals: Mapping[str, Any], estimator: Strategy | None, *, seed: int, rollout_number: int
) -> dict[str, Tensor]:
    """Labels (N,) that the rows of all ranks keep when the batch is cut.

    - ``groups``: the group's number;
    - ``scored``, ``dead``: whether the row was scored; whether its group is dead;
    - ``row_keys``: see `row_keys`;
    - ``shared_prefix``: tokens of the prefix that its group shares; 0 in groups that are not trained.
    """
    rewards, group_size = signals["rewards"], signals["group_size"]
    prefixes = shared_prefix_lengths(signals["completion_ids"], signals["mask"], group_size)
    dead = dead_groups(rewards, group_size)
    if estimator is None or not estimator.traits.trains_dead_groups:
        prefixes = prefixes.masked_fill(dead, 0)
    groups = torch.arange(len(rewards), device=rewards.device) // group_size
    data = {"groups": groups, "scored": ~rewards.isnan(), "dead": dead, "shared_prefix": prefixes}
    return data | {"row_keys": row_keys(len(rewards), seed, rollout_number).to(rewards.device)}


def row_draws(row_keys: Int[Tensor, " B"], mask: Int[Tensor, "B T"], seed: int) -> Float[Tensor, "B T"]:
    """Uniform draws in [0, 1), one per token that counts, +∞ elsewhere; float64 on the mask's device.

    The n-th draw of a row is a function of ``seed``, the row's key and n, numbered over the tokens that count. So draws
    do not depend on micro-batches, ranks or padding; the global random state is neither used nor changed, and nothing
    waits for the device. Rows with equal keys get equal draws.
    """
    counted = mask.bool()
    draws = keyed_bits(row_keys, seed, mask.shape[1], 53).double() * 2.0**-53
    places = (counted.long().cumsum(1) - 1).clamp(min=0)
    return torch.where(counted, draws.gather(1, places), torch.inf)
