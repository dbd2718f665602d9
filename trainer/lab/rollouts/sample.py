"""Choose the groups that a page shows: a uniform sample of the run."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST_SHOWN = 1_000
"""Tokens of a completion that are shown; the rest is cut off, and the page says how many."""


@dataclass(frozen=True)
class BatchSummary:
    """One rollout batch.

    Attributes:
        step: the optimizer step that follows its generation, from 1.
        groups: (number of the group, its rows, tokens of its completions) each.
        verdicts: right, wrong, unscored → rows.
    """

    number: int
    step: int
    rows: int
    groups: list[tuple[int, int, int]]
    verdicts: dict[str, int]


def chosen_groups(batches: Sequence[BatchSummary], most_rollouts: int, most_tokens: int) -> list[tuple[int, int]]:
    """(batch, group) of at most ``most_rollouts`` and ``most_tokens``, or one group, ordered by batch.

    In the order of a hash of batch and group: a uniform draw without replacement that depends on nothing else, so that
    the same files always give the same page.
    """

    def drawn(key: tuple[int, int]) -> bytes:
        return hashlib.blake2b(f"{key[0]} {key[1]}".encode(), digest_size=8).digest()

    sizes = {(batch.number, group): (rows, tokens) for batch in batches for group, rows, tokens in batch.groups}
    chosen: list[tuple[int, int]] = []
    rollouts = tokens = 0
    for key in sorted(sizes, key=drawn):
        rows, written = sizes[key]
        rollouts, tokens = rollouts + rows, tokens + min(written, rows * LONGEST_SHOWN)
        if chosen and (rollouts > most_rollouts or tokens > most_tokens):
            break
        chosen.append(key)
    return sorted(chosen)
