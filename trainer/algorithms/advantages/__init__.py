"""Advantage estimators: rewards of the whole rollout batch → advantages. One pure function an estimator.

Shapes: N completions on all ranks, G = ``group_size`` responses per prompt (a group's rows are adjacent), T tokens.
Every estimator takes ``rewards`` (N,) float and ``group_size`` and returns (N,), or (N, T) when it credits tokens.

The contract, checked when an estimator is registered:

- NaN in ⇔ NaN out. NaN marks a completion that no reward function scored; it is left out of every mean and std.
- A group whose scored rewards are all equal (also a group with one scored response) gets exact zeros. Without this the
  float noise of ``r − mean`` over ``std + ε``, under a fresh Adam, moves the weights by a whole learning rate.

The estimators of this file, moreover, do not change when a constant is added to the rewards of a group.
"""

from evenkeel.trainer.algorithms.groups import dead_groups as dead_groups
from evenkeel.trainer.algorithms.registry import collected, no_other

globals().update(collected(__name__))
__getattr__ = no_other(__name__)
