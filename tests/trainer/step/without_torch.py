"""A verifier, and a game to play in turns: the processes that they run in import this file, and no torch."""

import threading
from typing import Any

from evenkeel.rewards import Verdict, Verifier


class FirstIsDigit(Verifier):
    """Right where the completion begins with a digit."""

    def __call__(self, completion: str, reference: Any) -> Verdict:
        return Verdict(float(completion[:1].isdigit()), completion, "")


class Guess:
    """Find a number; a wrong guess is answered by higher or lower."""

    def __init__(self) -> None:
        self.turns, self.is_right = 0, False

    def reset(self, target: int = 0, **_: Any) -> str:
        self.target, self.turns, self.is_right = target, 0, False
        return " Guess a number."

    def guess(self, n: int) -> str:
        """Guess the number.

        Args:
            n: the guess.

        Returns:
            Whether it is the number, or the number is higher or lower.
        """
        self.turns, self.is_right = self.turns + 1, n == self.target
        return "right" if self.is_right else "higher" if n < self.target else "lower"

    def get_reward(self) -> float | None:
        return float(self.is_right) if self.turns else None


class Meeting(Guess):
    """Whose first guesses wait until those of all rows that call are under way."""

    place = threading.Barrier(3, timeout=20)

    def guess(self, n: int) -> str:
        if self.turns == 0:
            self.place.wait()
        return super().guess(n)

    guess.__doc__ = Guess.guess.__doc__
