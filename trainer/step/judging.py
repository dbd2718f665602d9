"""The rewards of the newest rollout batch, as TRL's reward functions gave them."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from evenkeel.rewards.verifier import LARGEST_SCORE
from evenkeel.trainer.step.setup import Setup


class Judging:
    """Keeps what reward functions said of a rollout batch.

    Attributes:
        rewards_per_function: (N, F) of all ranks, of the newest rollout batch.
        columns: what this rank's reward functions logged of it, name → one value a row.
    """

    rewards_per_function: Tensor
    columns: dict[str, list[Any]]

    def __init__(self, setup: Setup) -> None:
        self.names, self.weights, self.ranks = setup.reward_names, setup.reward_weights, setup.ranks

    def keep(self, rewards_per_function: Tensor, logged: Mapping[str, list[Any]]) -> None:
        """Keep the rewards (N, F) of all ranks and what was logged of this rank's rows, the newest of ``logged``."""
        rows = len(rewards_per_function) // self.ranks.count
        self.columns = {name: values[-rows:] for name, values in logged.items() if len(values) >= rows}
        self.rewards_per_function = rewards_per_function

    def refuse_unusable(self, rewards_per_function: Tensor) -> None:
        """
        Raises:
            ValueError: a reward is infinite, or too large to be summed: squares would overflow float32.
        """
        weighted = rewards_per_function * self.weights.to(rewards_per_function.device)
        too_large = (rewards_per_function.abs() > LARGEST_SCORE) | (weighted.abs() > LARGEST_SCORE)
        if too_large.any():
            columns = zip(self.names, rewards_per_function.T, too_large.T, strict=True)
            named = [f"{name} ({values[bad][0].item():g})" for name, values, bad in columns if bad.any()]
            raise ValueError(
                f"The reward of {', '.join(named)}, by itself or with its weight, is infinite or beyond "
                f"±{LARGEST_SCORE:g}. Return smaller numbers, or None where no score is possible."
            )
