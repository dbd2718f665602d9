"""The reward that an environment gives itself."""

from typing import Any

from evenkeel.rewards.verifier import Verdict, Verifier


class EnvironmentReward(Verifier):
    """The reward that the row's environment gives itself, by its ``get_reward``; 1 is the full one.

    ``None`` leaves the row unjudged, and so does an environment that failed. The row's reference is for the environment
    to read, in ``reset``; that it can is tried there.
    """

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Unjudged: there is no environment."""
        return Verdict(None, None, "the row has no environment, as only a run file's environment: gives it one")

    def of(self, environment: Any) -> Verdict:
        """What ``environment``, a `RowEnvironment`, says of its row."""
        if "get_reward" not in environment._answers:
            return Verdict(None, None, "the row's environment has no get_reward")
        score: float | None = environment._asked("get_reward") if environment.failure is None else None
        if environment.failure is not None:
            return Verdict(None, None, environment.failure)
        return Verdict(score, None, "the environment's get_reward")
