"""The gradient bench: the gradients of strategies on the same rollouts at the same weights, without a run of each."""

from evenkeel.trainer.lab.gradients.bench import Bench, Measured, bench
from evenkeel.trainer.lab.gradients.strategies import Named, named_strategies, named_strategy

__all__ = ["Bench", "Measured", "Named", "bench", "named_strategies", "named_strategy"]
