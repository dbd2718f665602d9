"""Which groups a page shows: a uniform sample of the run, and some groups before and after each jump."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evenkeel.trainer.lab.rollouts.jumps import Jump
from evenkeel.trainer.lab.rollouts.summaries import BatchSummary

AT_A_JUMP = 2
"""Groups shown of the batch before and of the batch after a jump."""
LONGEST_SHOWN = 1_000
"""Tokens of a completion that are shown; the rest is cut off, and the page says how many."""


@dataclass(frozen=True, order=True)
class Chosen:
    """A group of a rollout batch, and why it is shown."""

    number: int
    group: int
    why: str = ""


def chosen_groups(
    batches: Sequence[BatchSummary], found: Sequence[Jump], most_rollouts: int, most_tokens: int
) -> list[Chosen]:
    """Groups of together at most so many rollouts and tokens (one group in any case), by batch.

    First those at jumps, then all others in the order of a hash of batch and group: a uniform draw without
    replacement that depends on nothing else, so that the same files always give the same page.
    """
    sizes = {(batch.number, group): (rows, tokens) for batch in batches for group, rows, tokens in batch.groups}
    chosen: dict[tuple[int, int], Chosen] = {}
    rollouts = tokens = 0
    for each in (*_at_jumps(batches, found), *(Chosen(*key) for key in sorted(sizes, key=_drawn))):
        key = each.number, each.group
        if key in chosen:
            continue
        rows, written = sizes[key]
        rollouts, tokens = rollouts + rows, tokens + min(written, rows * LONGEST_SHOWN)
        if chosen and (rollouts > most_rollouts or tokens > most_tokens):
            break
        chosen[key] = each
    return sorted(chosen.values())


def _at_jumps(batches: Sequence[BatchSummary], found: Sequence[Jump]) -> Iterator[Chosen]:
    places = {batch.number: place for place, batch in enumerate(batches)}
    for jump in found:
        place = places[jump.number]
        for at, word in ((place, "from"), (place - 1, "before")):
            batch = batches[at]
            groups = sorted((group for group, _, _ in batch.groups), key=lambda group: _drawn((batch.number, group)))
            for group in groups[:AT_A_JUMP]:
                yield Chosen(batch.number, group, f"{jump.kind}: {word} step {jump.step}")


def _drawn(key: tuple[int, int]) -> bytes:
    return hashlib.blake2b(f"{key[0]} {key[1]}".encode(), digest_size=8).digest()
