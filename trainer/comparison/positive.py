"""Arguments of a command line that must be above zero."""

import argparse
from collections.abc import Callable


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """A ``type`` for argparse: reads a number of a kind, and refuses 0 and below."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            words = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"it is {text!r}, which is not {words}") from None
        if not value > 0:
            raise argparse.ArgumentTypeError(f"it is {text}, and must be above 0")
        return value

    return read
