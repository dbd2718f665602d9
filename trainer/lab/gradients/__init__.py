"""The gradient bench: what strategies make of the same rollouts at the same weights, before a run is paid for."""

from evenkeel.trainer.lab.gradients.bench import Bench, Measured, bench
from evenkeel.trainer.lab.gradients.strategies import Named, named_strategies, named_strategy

__all__ = ["Bench", "Measured", "Named", "bench", "named_strategies", "named_strategy"]
