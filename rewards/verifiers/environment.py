"""Rewards of environments."""

from collections.abc import Sequence
from typing import Any

from evenkeel.rewards.environments.row_environment import RowEnvironment, asked
from evenkeel.rewards.verifier import Verdict, Verifier


class EnvironmentReward(Verifier):
    """The reward of the row's environment, by its ``get_reward``; 1 is the full score.

    ``None`` leaves the row unscored, and so does an environment that failed. The row's reference is read by the
    environment's ``reset``, which is tried before training.
    """

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Unscored: there is no environment."""
        return Verdict(None, None, "the row has no environment, as only a run file's environment: gives it one")

    def of(self, environments: Sequence[RowEnvironment]) -> list[Verdict]:
        """Each environment's verdict on its row."""
        live = [environment for environment in environments if environment.failure is None]
        scores = dict(zip(live, asked(live, "get_reward"), strict=True))
        return [
            Verdict(scores.get(each), None, each.failure or "the environment's get_reward")
            if "get_reward" in each._control
            else Verdict(None, None, "the row's environment has no get_reward")
            for each in environments
        ]
