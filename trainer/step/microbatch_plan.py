"""Which rows go into which micro-batch, so that little of it is padding. Pure functions of lengths."""

import torch
from jaxtyping import Int
from torch import Tensor

_CANDIDATES = 512
"""Cuts are searched at no more places than this: the search is quadratic, and finer ones gain next to nothing."""
_NEVER = 2**62


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


def planned_cuts(
    lengths: Int[Tensor, "R U 2"], *, num_microbatches: int, budget: int, rows_per_unit: int = 1, units_each: int = 1
) -> list[list[list[int]]]:
    """The units of each micro-batch, for every rank: like lengths together, as few tokens as a cut of them can have.

    Units are sorted by their width and the sorted list is cut where the padded tokens summed over the micro-batches are
    least (dynamic programming over all cuts); of several ranks the longest in each micro-batch counts, for the others
    wait for it. All ranks get as many micro-batches as there are, with the same number of units each. Where a rank has
    fewer units to train, one that is left out stands there as padding: unit u is then written as ``−1 − u``. What needs
    no further micro-batch leaves the first ones with one such unit.

    Args:
        lengths: tokens of each unit's prompt and completion on each rank; a completion of 0 is left out.
        budget: padded tokens of one micro-batch at most. Where no cut keeps it, ``units_each`` units a micro-batch.
        rows_per_unit: 1, or the group size where groups stay together.
        units_each: units of the configured micro-batch; ``num_microbatches · units_each`` is never less than U.

    Returns:
        rank → micro-batch → its units.
    """
    width = lengths.sum(2).masked_fill(lengths[:, :, 1] == 0, 0)
    order = width.argsort(dim=1, descending=True, stable=True)
    present = int((width > 0).sum(1).max())
    empty = [[-1]] * num_microbatches
    if present == 0:
        return [empty for _ in lengths]
    ordered = lengths.gather(1, order[:, :, None].expand_as(lengths))[:, :present]
    ordered = ordered.where((ordered[:, :, 1:] > 0), 1)  # padding alone: one token each
    cost = torch.stack([padded_tokens(rank[:, 0], rank[:, 1], rows_per_unit) for rank in ordered]).amax(0)
    ends = _best_cut(cost, num_microbatches, budget) or [*range(units_each, present, units_each), present]
    starts = [0, *ends[:-1]]
    indices = order.where(width.gather(1, order) > 0, -1 - order)[:, :present].tolist()
    full = [[rank[start:end] for start, end in zip(starts, ends, strict=True)] for rank in indices]
    return [empty[len(ends) :] + rank for rank in full]


def _best_cut(cost: Int[Tensor, "U U"], max_microbatches: int, budget: int) -> list[int] | None:
    """Ends of the segments whose cost is least in sum, none above ``budget``; ``None`` where no cut fits."""
    units = len(cost)
    edges = torch.arange(0, units, -(-units // _CANDIDATES))
    ends = torch.cat([edges[1:], torch.tensor([units])])
    between = cost[edges][:, ends - 1]
    between = between.masked_fill((between > budget) | (edges[:, None] >= ends), _NEVER // 2)
    least, came_from = between[0], []  # of everything up to each end, in one segment
    for _ in range(min(max_microbatches, len(ends)) - 1):
        before = torch.cat([torch.tensor([_NEVER // 2]), least[:-1]])
        sums, best = (before[:, None] + between).min(0)
        came_from.append(best.where(sums < least, -1))  # -1: no further segment helps
        least = least.minimum(sums)
    if int(least[-1]) >= _NEVER // 2:
        return None
    found, last = [units], len(ends) - 1
    for best in reversed(came_from):
        start = int(best[last])
        if start >= 0:
            last = start - 1
            found.append(int(ends[last]))
    return found[::-1]
