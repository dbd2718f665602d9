"""What each row of a rollout batch is told of its group before the batch is cut."""

import torch
from torch import Tensor

from trainer.algorithms.diagnostics import shared_prefix_lengths
from trainer.algorithms.drift import uniform_groups
from trainer.algorithms.groups import dead_groups
from trainer.algorithms.registry import Strategy
from trainer.algorithms.row_draws import row_keys
from trainer.step.signals import Signals


def group_labels(
    signals: Signals, estimator: Strategy | None, *, outcomes: bool, numbers: tuple[int, int]
) -> dict[str, Tensor]:
    """Labels (N,) of the rows of all ranks; ``numbers`` are the run's seed and the rollout batch's own.

    - ``groups``: the group's number;
    - ``judged``: whether the row was judged;
    - ``row_keys``: see `row_keys`;
    - ``shared_prefix``: how many tokens its group begins with alike; 0 in groups that are not trained;
    - ``all_right``, ``all_wrong``: whether all its judged rows are; with ``outcomes``, and where there are verdicts.
    """
    rewards, group_size = signals["rewards"], signals["group_size"]
    prefixes = shared_prefix_lengths(signals["completion_ids"], signals["mask"], group_size)
    if estimator is None or not estimator.traits.trains_dead_groups:
        prefixes = prefixes.masked_fill(dead_groups(rewards, group_size), 0)
    groups = torch.arange(len(rewards), device=rewards.device) // group_size
    labels = {"groups": groups, "judged": ~rewards.isnan(), "shared_prefix": prefixes}
    labels["row_keys"] = row_keys(len(rewards), *numbers).to(rewards.device)
    if outcomes and signals["correct"] is not None:
        uniform = uniform_groups(signals["correct"], group_size)
        labels |= {kind: rows[groups] for kind, rows in zip(("all_right", "all_wrong"), uniform, strict=True)}
    return labels
