"""Which rows go into which micro-batch, so that little of it is padding. Pure functions of lengths."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

_CANDIDATES = 512
"""Cuts are searched at no more places than this: the search is quadratic, and finer ones gain next to nothing."""
_NEVER = 2**62
LEAST_GAIN = 1.3
"""Prompts are shared where that leaves so many times less work, by an estimate that leaves out the LM head: 1.44 times
less took 1.18 times less time, .99 times 1.03 (docs/run_file.md)."""


@dataclass(frozen=True)
class Sharing:
    """What is known of units whose rows may share prompts, beside their lengths.

    Attributes:
        totals: completion tokens of each rank's units, all rows together.
        prompts: the number of each one's prompt, the same for the same prompt of one rank.
        attention_length: see `evenkeel.trainer.step.shared_prompts.attention_length`.
    """

    totals: Int[Tensor, "R U"]
    prompts: Int[Tensor, "R U"]
    attention_length: float


def work(tokens: Tensor, sequences: Tensor, attention_length: float) -> Tensor:
    """``tokens · (1 + length / attention_length)``, rounded: what ``tokens`` in ``sequences`` of one length cost, in
    tokens without attention. 0 where there are none."""
    length = tokens / sequences.clamp(min=1)
    return (tokens * (1 + length / attention_length)).round().long()


def work_of(layout: Sequence[int], attention_length: float) -> int:
    """`work` of one layout: so many sequences of so many tokens each, padding included."""
    sequences, length = layout
    return int(work(torch.tensor(sequences * length), torch.tensor(sequences), attention_length))


def pays(shared: Any, unshared: Any) -> Any:
    """Where ``shared`` work is `LEAST_GAIN` times less than ``unshared`` work."""
    return shared * LEAST_GAIN <= unshared


def padded_tokens(prompts: Int[Tensor, "U"], completions: Int[Tensor, "U"], rows: int) -> Int[Tensor, "U V"]:
    """Tokens of units i … j of ``rows`` rows each in one micro-batch, padding included: entry (i, j), 0 below i = j.

    ``(j − i + 1) · rows · (longest prompt + longest completion)``: prompts are padded on the left, completions on the
    right, each to the longest of the micro-batch.
    """
    units = len(prompts)
    upper = torch.ones(units, units, dtype=torch.long).triu()
    width = sum((upper * lengths).cummax(1).values for lengths in (prompts, completions))
    position = torch.arange(units)
    return upper * (position - position[:, None] + 1) * rows * width


def packed_tokens(
    prompt_lengths: Int[Tensor, "U"], totals: Int[Tensor, "U"], prompts: Int[Tensor, "U"]
) -> tuple[Int[Tensor, "U V"], Int[Tensor, "U V"]]:
    """Tokens of units i … j where neighbours of one prompt share it, padding included, and in how many sequences.

    ``G · max over prompts of (prompt − 1 + Σ completions)``, see `evenkeel.trainer.step.shared_prompts`; 0 below i = j.
    """
    units = len(prompts)
    position, upper = torch.arange(units), torch.ones(units, units, dtype=torch.long).triu()
    begins = torch.cat([torch.ones(1, dtype=torch.bool), prompts[1:] != prompts[:-1]])
    run = begins.cumsum(0)
    before = totals.cumsum(0) - totals
    first = position.where(begins, 0).cummax(0).values  # of j's run
    sums = before + totals - before[first].maximum(before[:, None])  # (i, j): of j's run, from i on
    longest = (upper * (sums + prompt_lengths - 1)).cummax(1).values
    sequences = upper * (run - run[:, None] + 1)
    return sequences * longest, sequences


def planned_cuts(
    lengths: Int[Tensor, "R U 2"],
    *,
    num_microbatches: int,
    budget: int,
    rows_per_unit: int = 1,
    units_each: int = 1,
    sharing: Sharing | None = None,
) -> list[list[list[int]]]:
    """The units of each micro-batch, for every rank: like lengths together, as few tokens as a cut of them can have.

    Units are sorted by their width and the sorted list is cut where the padded tokens summed over the micro-batches are
    least (dynamic programming over all cuts); of several ranks the longest in each micro-batch counts, for the others
    wait for it. All ranks get as many micro-batches as there are, with the same number of units each. Where a rank has
    fewer units to train, one that is left out stands there as padding: unit u is then written as ``−1 − u``. What needs
    no further micro-batch leaves the first ones with one such unit.

    With ``sharing`` the units are also sorted by prompt, the longest together with its completions first, and cut where
    the work is least; this order is taken where it pays.

    Args:
        lengths: tokens of each unit's prompt and completion on each rank; a completion of 0 is left out.
        budget: padded tokens of one micro-batch at most. Where no cut keeps it, ``units_each`` units a micro-batch.
        rows_per_unit: 1, or the group size where groups stay together.
        units_each: units of the configured micro-batch; ``num_microbatches · units_each`` is never less than U.
        sharing: where rows may share prompts; ``None`` = they do not.

    Returns:
        rank → micro-batch → its units.
    """
    width = lengths.sum(2).masked_fill(lengths[:, :, 1] == 0, 0)
    order = width.argsort(dim=1, descending=True, stable=True)
    present = int((width > 0).sum(1).max())
    empty = [[-1]] * num_microbatches
    if present == 0:
        return [empty for _ in lengths]

    def cost(order: Tensor, *, shares: bool) -> tuple[Tensor, Tensor]:
        """Tokens, and what they cost, of units i … j in an order: of the rank with the most."""
        ordered = lengths.gather(1, order[:, :, None].expand_as(lengths))[:, :present]
        ordered = ordered.where((ordered[:, :, 1:] > 0), 1)  # padding alone: one token each
        tokens = torch.stack([padded_tokens(rank[:, 0], rank[:, 1], rows_per_unit) for rank in ordered])
        if sharing is None:
            return tokens.amax(0), tokens.amax(0)
        position = torch.arange(present)
        costs = work(tokens, (position - position[:, None] + 1) * rows_per_unit, sharing.attention_length)
        if shares:
            columns = zip(ordered, sharing.totals.gather(1, order), sharing.prompts.gather(1, order), strict=True)
            packed = [packed_tokens(rank[:, 0], sums[:present], numbers[:present]) for rank, sums, numbers in columns]
            shared, sequences = (torch.stack(each) for each in zip(*packed, strict=True))
            less = work(shared, sequences, sharing.attention_length)
            gains = pays(less, costs)
            tokens, costs = shared.where(gains, tokens), less.where(gains, costs)
        return tokens.amax(0), costs.amax(0)

    ends, least = _best_cut(*cost(order, shares=False), num_microbatches, budget)
    if sharing is not None:
        ranks = zip(order, lengths[:, :, 0], width, sharing.totals, sharing.prompts, strict=True)
        by_prompt = torch.stack([_by_prompt(*rank) for rank in ranks])
        shared_ends, shared_least = _best_cut(*cost(by_prompt, shares=True), num_microbatches, budget)
        if shared_ends is not None and pays(shared_least, least):
            order, ends = by_prompt, shared_ends
    ends = ends or [*range(units_each, present, units_each), present]
    starts = [0, *ends[:-1]]
    indices = order.where(width.gather(1, order) > 0, -1 - order)[:, :present].tolist()
    full = [[rank[start:end] for start, end in zip(starts, ends, strict=True)] for rank in indices]
    return [empty[len(ends) :] + rank for rank in full]


def _by_prompt(order: Tensor, prompt_lengths: Tensor, width: Tensor, totals: Tensor, prompts: Tensor) -> Tensor:
    """Units in ``order``, those of one prompt together, the longest packed sequence first; what is left out, last."""
    present = width > 0
    sums = torch.zeros(int(prompts.max()) + 1, dtype=totals.dtype).scatter_add(0, prompts, totals * present)
    packed = (sums[prompts] + prompt_lengths).masked_fill(~present, 0)
    for key in (prompts, -packed):
        order = order[key[order].argsort(stable=True)]
    return order


def _best_cut(
    tokens: Int[Tensor, "U U"], cost: Int[Tensor, "U U"], max_microbatches: int, budget: int
) -> tuple[list[int] | None, int]:
    """Ends of the segments whose cost is least in sum, none of more tokens than ``budget``, and that sum.

    ``None`` where no cut fits.
    """
    units = len(cost)
    edges = torch.arange(0, units, -(-units // _CANDIDATES))
    ends = torch.cat([edges[1:], torch.tensor([units])])
    too_many = tokens[edges][:, ends - 1] > budget
    between = cost[edges][:, ends - 1].masked_fill(too_many | (edges[:, None] >= ends), _NEVER // 2)
    least, came_from = between[0], []  # of everything up to each end, in one segment
    for _ in range(min(max_microbatches, len(ends)) - 1):
        before = torch.cat([torch.tensor([_NEVER // 2]), least[:-1]])
        sums, best = (before[:, None] + between).min(0)
        came_from.append(best.where(sums < least, -1))  # -1: no further segment helps
        least = least.minimum(sums)
    if int(least[-1]) >= _NEVER // 2:
        return None, _NEVER // 2
    found, last = [units], len(ends) - 1
    for best in reversed(came_from):
        start = int(best[last])
        if start >= 0:
            last = start - 1
            found.append(int(ends[last]))
    return found[::-1], int(least[-1])
