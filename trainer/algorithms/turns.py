"""Turns of a response (the policy's text between two insertions of a tool): their signals and returns.

N completions, T tokens, K turns.
"""

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad


def turn_numbers(mask: Int[Tensor, "N T"]) -> Int[Tensor, "N T"]:
    """The runs of tokens that ``mask`` counts, numbered from 0 in each row; −1 where it counts none.

    Without tools that is 0 on every token of a response.
    """
    counted = mask.bool()
    begins = counted & ~pad(counted, (1, 0))[:, :-1]
    return (begins.cumsum(1) - 1).masked_fill(~counted, -1)


def turn_column(name: str, lists: Sequence[Any], mask: Int[Tensor, "N T"]) -> Tensor:
    """The signal ``name``, ``turn_rewards`` or ``state_keys``, (N, K), from the ``lists`` logged for the rows.

    Turns without an entry, or with ``None``, have reward 0 and an unknown state (−1), as have all turns of a row whose
    list is ``None``. A list may have one entry more than the row has turns, of an answer that was truncated to nothing;
    its reward goes to the turn before. A row that the loss leaves out has no turns.

    Raises:
        ValueError: a row has no list, an entry of another kind, or more entries than that.
    """
    paid = name == "turn_rewards"

    # a text's key is the same in every process
    def number(entry: Any) -> float | int:
        if paid:
            return float(entry or 0.0)
        return -1 if entry is None else int.from_bytes(blake2b(entry.encode(), digest_size=8).digest()) >> 1

    def fits(entry: Any) -> bool:
        return isinstance(entry, float | int) and math.isfinite(entry) if paid else isinstance(entry, str)

    counts = (turn_numbers(mask).amax(1) + 1).tolist()
    most, rows = max(1, *counts), []
    for row, (logged, count) in enumerate(zip(lists, counts, strict=True)):
        entries = [] if logged is None else logged
        is_short = isinstance(entries, list | tuple) and (count == 0 or len(entries) <= count + 1)
        if not is_short or not all(entry is None or fits(entry) for entry in entries):
            kind = "number" if paid else "text"
            what = f"{name!r}: row {row} has {count} turns, and a reward function logged {entries!r:.80} for it."
            raise ValueError(f"{what} Log a list with one {kind} for each turn that the policy wrote, or None.")
        values = [*map(number, entries), *[number(None)] * count]
        if paid and count:
            values[count - 1] = sum(values[count - 1 :])
        rows.append(values[:count] + [math.nan if paid else -1] * (most - count))
    return torch.tensor(rows)


def last_turns(turn_rewards: Float[Tensor, "N K"]) -> Int[Tensor, "N"]:
    """The number of each row's last turn; −1 in a row without any."""
    return (~turn_rewards.isnan()).sum(1) - 1


def turn_returns(rewards: Float[Tensor, "N"], turn_rewards: Float[Tensor, "N K"], gamma: float) -> Float[Tensor, "N K"]:
    """``R_{i,k} = Σ_{l ≥ k} γ^{l−k} r_{i,l}``, with the outcome ``rewards`` added to the last turn's reward.

    NaN after a row's last turn, and in all of an unscored row.
    """
    turn = torch.arange(turn_rewards.shape[1], device=turn_rewards.device)
    is_last = turn == last_turns(turn_rewards)[:, None]
    earned = turn_rewards + is_last * rewards[:, None]
    returns = [torch.zeros_like(rewards)]
    for paid in reversed(earned.nan_to_num().unbind(1)):
        returns.append(paid + gamma * returns[-1])
    return torch.stack(returns[:0:-1], dim=1).masked_fill(earned.isnan(), torch.nan)


def of_tokens(
    values: Float[Tensor, "N K"], turns: Int[Tensor, "N T"], rewards: Float[Tensor, "N"]
) -> Float[Tensor, "N T"]:
    """Each token's turn value: 0 on tokens of no turn and where the value is NaN; NaN in unscored rows."""
    per_token = values.nan_to_num().gather(1, turns.clamp(min=0)).masked_fill(turns < 0, 0.0)
    return per_token.masked_fill(rewards.isnan()[:, None], torch.nan)


def counted_first(mask: Int[Tensor, "N T"]) -> Int[Tensor, "N T"]:
    """Indices of each row's tokens: those that count, in order, then the others."""
    return (1 - mask).argsort(dim=1, stable=True)
