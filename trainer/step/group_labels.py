"""What each row of a rollout batch is told of its group before the batch is cut."""

import torch
from torch import Tensor

from trainer.algorithms.diagnostics import shared_prefix_lengths
from trainer.algorithms.drift import uniform_groups
from trainer.algorithms.groups import dead_groups
from trainer.algorithms.registry import Strategy
from trainer.step.signals import Signals


def group_labels(signals: Signals, estimator: Strategy | None, *, outcomes: bool) -> dict[str, Tensor]:
    """Labels (N,) of the rows of all ranks.

    - ``groups``: the group's number;
    - ``judged``: whether the row was judged;
    - ``shared_prefix``: how many tokens its group begins with alike; 0 in groups that are not trained;
    - ``all_right``, ``all_wrong``: whether all its judged rows are; with ``outcomes``, and where there are verdicts.
    """
    rewards, group_size = signals["rewards"], signals["group_size"]
    prefixes = shared_prefix_lengths(signals["completion_ids"], signals["mask"], group_size)
    if estimator is None or not estimator.traits.trains_dead_groups:
        prefixes = prefixes.masked_fill(dead_groups(rewards, group_size), 0)
    groups = torch.arange(len(rewards), device=rewards.device) // group_size
    labels = {"groups": groups, "judged": ~rewards.isnan(), "shared_prefix": prefixes}
    if outcomes and signals["correct"] is not None:
        uniform = uniform_groups(signals["correct"], group_size)
        labels |= {kind: rows[groups] for kind, rows in zip(("all_right", "all_wrong"), uniform, strict=True)}
    return labels
