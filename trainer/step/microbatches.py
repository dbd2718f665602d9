"""How a rollout batch is cut into the micro-batches of its optimizer steps."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from trl.trainer.utils import split_pixel_values_by_grid, split_tensor_dict, unsplit_pixel_values_by_grid

Batch = dict[str, Any]


def whole_group_microbatches(batch: Mapping[str, Any], group_size: int, num_microbatches: int) -> list[Batch]:
    """This rank's rollout batch cut into ``num_microbatches`` of equal size, its groups in random order but whole.

    TRL permutes rows, which scatters a group over the optimizer steps, so that what cancels over the batch no longer
    cancels inside a step. A group stays in one micro-batch where the micro-batch size is a multiple of ``group_size``,
    in one optimizer step where that step's rows are (see `compatibility`).
    """
    num_groups = len(batch["completion_ids"]) // group_size
    groups = torch.randperm(num_groups)
    rows = (groups[:, None] * group_size + torch.arange(group_size)).flatten()
    ordered = chosen_rows(split_pixel_values_by_grid(dict(batch)), rows)
    return [unsplit_pixel_values_by_grid(part) for part in split_tensor_dict(ordered, num_microbatches)]


def microbatches_over_all_ranks(
    batch: Mapping[str, Any], unit: int, updates: int, num_microbatches: int, seed: int, rank: int
) -> list[Batch]:
    """This rank's rollout batch cut so that each optimizer step trains the same rows on any number of ranks.

    Rows, or groups of ``unit`` rows that stay together, are numbered over all ranks. Of each ``updates`` neighbours
    every optimizer step gets one, drawn by ``seed`` and the neighbours' place alone; they lie on one rank, so that no
    row changes its rank. TRL's cut draws from each rank's own generator.

    Args:
        updates: optimizer steps for which the batch is trained; they divide this rank's number of units.
    """
    strata = len(batch["completion_ids"]) // unit // updates
    draws = torch.Generator().manual_seed(seed)
    drawn = [torch.randperm(updates, generator=draws) for _ in range((rank + 1) * strata)]
    order = torch.stack(drawn[rank * strata :])
    units = (torch.arange(strata)[:, None] * updates + order).T.flatten()
    rows = (units[:, None] * unit + torch.arange(unit)).flatten()
    ordered = chosen_rows(split_pixel_values_by_grid(dict(batch)), rows)
    return [unsplit_pixel_values_by_grid(part) for part in split_tensor_dict(ordered, num_microbatches)]


def chosen_rows(batch: Batch, rows: Tensor) -> Batch:
    """The rows of every entry that has rows; scalars and ``None`` stay."""

    def chosen(value: Any) -> Any:
        if isinstance(value, Tensor) and value.dim():
            return value[rows.to(value.device)]
        return [value[row] for row in rows.tolist()] if isinstance(value, list) else value

    return {name: chosen(value) for name, value in batch.items()}
