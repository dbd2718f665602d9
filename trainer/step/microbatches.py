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


def chosen_rows(batch: Batch, rows: Tensor) -> Batch:
    """The rows of every entry that has rows; scalars and ``None`` stay."""

    def chosen(value: Any) -> Any:
        if isinstance(value, Tensor) and value.dim():
            return value[rows.to(value.device)]
        return [value[row] for row in rows.tolist()] if isinstance(value, list) else value

    return {name: chosen(value) for name, value in batch.items()}
