"""Errors of libraries before the first optimizer step become refusals, which say in which part of the run they arose.

An error raised by this package's own code is a bug of ours and keeps its traceback.
"""

import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evenkeel.errors import Refusal
from evenkeel.trainer.run.processes import is_lost_connection
from evenkeel.trainer.step.guards import FaultError, is_full

UNEXPLAINED = "This came from a library, unexplained."
_OURS = tuple(Path(__file__).resolve().parents[2] / room for room in ("trainer", "rewards", "scripts"))
_MOST_CHARACTERS = 500


@contextmanager
def library_errors_in_words(stage: Callable[[], str], is_over: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turn an error that a library raises inside into a refusal that names the stage of the run.

    Args:
        stage: what the run is doing.
        is_over: whether training has begun, so that the error is not about the run file and stays as it is.

    Raises:
        Refusal: with the error's own message, and the file that its traceback was written to.
    """
    try:
        yield
    except (Refusal, FaultError):
        raise
    except Exception as error:
        known = is_lost_connection(error) or (isinstance(error, OSError) and is_full(error))
        if known or is_over() or _is_ours(error):
            raise
        raise Refusal(f"{stage()}: {in_words(error)} {UNEXPLAINED}{_kept(error)}", code="library") from error


def in_words(error: BaseException) -> str:
    """Class and message of an error, cut after a few lines."""
    text = " ".join(line.strip() for line in str(error).strip().splitlines()[:6])
    text = text[:_MOST_CHARACTERS].rstrip().rstrip(".") or "without a message"
    return f"{type(error).__name__}: {text}."


def _is_ours(error: BaseException) -> bool:
    """Whether the error was raised in this package's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and any(Path(frames[-1].filename).is_relative_to(room) for room in _OURS)


def _kept(error: BaseException) -> str:
    try:
        with tempfile.NamedTemporaryFile("w", prefix="evenkeel-", suffix=".txt", delete=False) as file:
            file.writelines(traceback.format_exception(error))
    except OSError:
        return ""
    return f" Its traceback: {file.name}"
