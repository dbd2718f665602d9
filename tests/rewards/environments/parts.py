"""Environments and tools as users write them, with what can go wrong in each."""

import asyncio
import os
import random
import re
import subprocess
import sys
import threading
from typing import Any

from evenkeel.rewards.environments.shipped import Guessing

RELEASE = threading.Event()
"""Never set: calls that wait for it hang."""


class Diary:
    """Each method does what its name says; ``made`` counts objects."""

    made = 0

    def __init__(self, *, paid: float = 1.0) -> None:
        type(self).made += 1
        self.paid, self.written = paid, list[str]()

    def reset(self, **row: Any) -> str | None:
        if row.get("reference") == "away":
            raise ConnectionError("the diary's server is away")
        self.written = []
        return row.get("greeting")

    def write(self, text: str) -> str:
        """Write a line.

        Args:
            text: The line.

        Returns:
            How many lines there are.
        """
        if not text:
            raise ValueError("there is nothing to write")
        self.written.append(text)
        return f"{len(self.written)} lines"

    async def wait(self, seconds: float) -> str:
        """Wait.

        Args:
            seconds: How long.
        """
        await asyncio.sleep(seconds)
        return "waited"

    def lose(self) -> str:
        """Lose the connection."""
        raise ConnectionResetError("the server has gone")

    def leave(self) -> str:
        """Try to end the run."""
        sys.exit("enough")

    def get_reward(self) -> float | None:
        return self.paid * len(self.written) if self.written else None

    def state(self) -> str:
        return " ".join(self.written)

    def turn_reward(self) -> float:
        return 0.5


class Counting:
    """What it keeps from row to row is seen in its answers."""

    def __init__(self) -> None:
        self.rows = 0

    def reset(self, **_: Any) -> str:
        self.rows += 1
        return f" Row {self.rows}."

    def count(self) -> str:
        """How many rows this object has had, and a number that is drawn."""
        return f"row {self.rows}, {random.random()}"


class Unruly(Counting):
    """It holds and harms the process that it lives in."""

    def processes(self) -> list[int]:
        """This process and one that it starts, which would outlive it."""
        return [os.getpid(), subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid]

    def sleep(self) -> None:
        """Hang where other threads go on."""
        RELEASE.wait(30)

    def hang(self) -> None:
        """Hang where Python's lock is held."""
        re.match(r"(a|a)*$", "a" * 64 + "b")


class Silent:
    """Without a tool and a reward."""

    def reset(self, **_: Any) -> None: ...


class Parts(Silent):
    """Answers that are no text."""

    def reset(self, begins: Any = None, **_: Any) -> Any:
        return begins

    def say(self, answer: Any) -> Any:
        """Say.

        Args:
            answer: What.
        """
        return answer

    @staticmethod
    def twice(text: str) -> str:
        """Say it twice.

        Args:
            text: What.
        """
        return 2 * text

    again = say


def never_called():
    raise AssertionError("called though it is no part")


def shout(text: str) -> str:
    """Shout.

    Args:
        text: What.
    """
    if text == "leave":
        sys.exit("enough")
    if text == "refuse":
        raise ValueError("I will not shout that")
    if text == "away":
        raise ConnectionResetError("the server has gone")
    return text.upper()


class Few(Silent):
    """A server with room for two sessions, that then answers nobody, or hangs."""

    made = 0

    def __init__(self, *, hangs: bool = False) -> None:
        type(self).made += 1
        if type(self).made > 2:
            RELEASE.wait(30 * hangs)
            raise ConnectionError("no session is left")


class Doubled(Guessing):
    """Plays only where it is given twice the number."""

    def reset(self, *, reference: str, twice: int, **row: Any) -> None:
        if twice != 2 * int(reference):
            raise ValueError(f"twice {reference} is not {twice}")
        super().reset(reference=reference, **row)
