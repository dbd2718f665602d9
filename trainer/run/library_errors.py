"""Library errors before the first optimizer step become refusals, which name file, line and key.

An error raised by this package's own code is a bug of ours and keeps its traceback.
"""

import re
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from evenkeel.errors import Problem, Refusal
from evenkeel.trainer.run.config.yaml_document import Node
from evenkeel.trainer.run.processes import is_full, is_lost_connection

Place = tuple[str | int, ...]
UNEXPLAINED = "This came from a library, unexplained."
_OURS = tuple(Path(__file__).resolve().parents[2] / room for room in ("trainer", "rewards", "scripts"))
_MOST_CHARACTERS = 500


@contextmanager
def library_errors_in_words(stage: Callable[[], str], is_over: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turn an error that a library raises inside into a refusal with its message, and the file of its traceback.

    Args:
        stage: what the run is doing, which the refusal names.
        is_over: returns whether training has begun; errors are then not about the run file, and raised unchanged.
    """
    try:
        yield
    except Refusal:
        raise
    except Exception as error:
        from evenkeel.trainer.step.guards import FaultError  # imports torch

        known = is_lost_connection(error) or (isinstance(error, OSError) and is_full(error))
        if known or isinstance(error, FaultError) or is_over() or _is_ours(error):
            raise
        raise Refusal(f"{stage()}: {in_words(error)} {UNEXPLAINED}{_kept(error)}", code="library") from error


def in_words(error: BaseException) -> str:
    """Class and message of an error, cut after a few lines."""
    text = " ".join(line.strip() for line in str(error).strip().splitlines()[:6])
    text = text[:_MOST_CHARACTERS].rstrip().rstrip(".") or "without a message"
    return f"{type(error).__name__}: {text}."


@contextmanager
def located(tree: Node, *path: str) -> Iterator[None]:
    """Add to a refusal raised inside its place in the run's file; ``path`` where its message names no setting."""
    try:
        yield
    except Refusal as refusal:
        refusal.hold([at_its_line(each, tree, path) for each in refusal.problems])
        raise


def at_its_line(problem: Problem, tree: Node, path: Place = ()) -> Problem:
    """``problem`` with the setting that it names, else ``path``, and the file and line of that setting.

    A note, a problem with an origin, and one about an environment variable are returned unchanged.
    """
    if problem.severity == "note" or problem.origin is not None or re.match(r"[A-Z]+_[A-Z_]+\b", problem.what):
        return problem
    path = problem.path or key_named(problem.what, tree) or path
    nodes = [tree.at(path[:end]) for end in range(len(path), 0, -1)]
    node = next((node for node in nodes if node is not None), None)
    return replace(problem, path=path, origin=None if node is None else node.origin)


_CALLED: dict[str, Place] = {
    "get_peft_model": ("model", "lora"),
    "create_optimizer": ("trl", "optim_args"),
    "create_scheduler": ("trl", "lr_scheduler_type"),
    "_generate": ("trl",),
    "_calculate_rewards": ("rewards",),
    "advantages_of": ("algorithm", "advantage"),
    "compute_loss": ("algorithm",),
    "evaluate": ("evaluation",),
    "_save_checkpoint": ("trl", "save_strategy"),
}
"""Function → the setting, or the section, that an error raised below it is about."""


def place_of(error: BaseException, tree: Node) -> Place:
    """The written setting that an error's message names; else the one of the function that failed (`_CALLED`)."""
    frames = traceback.extract_tb(error.__traceback__)
    done = next((_CALLED[frame.name] for frame in reversed(frames) if frame.name in _CALLED), ())
    return key_named(str(error), tree) or done


def key_named(text: str, tree: Node) -> Place:
    """The written setting that a message names, by its key or else by its value; empty where it names none.

    A key counts if it has several words, is in quotes or before ``=``; a value, if it is in quotes.
    """
    best: tuple[int, Place] = (0, ())
    for path, value in _written(tree, ()):
        key = re.escape(str(path[-1]))
        by_name = re.search(rf"\b{key}\b" if "_" in key else rf"['\"`]{key}['\"`]|\b{key}=", text)
        by_value = isinstance(value, str) and repr(value) in text
        best = max(best, (1000 + len(key) if by_name else int(by_value), path), key=lambda found: found[0])
    return best[1]


def _written(node: Node, place: Place) -> Iterator[tuple[Place, object]]:
    """Every key of the tree with its value."""
    if not isinstance(node.value, dict | list):
        return
    for key, child in node.value.items() if isinstance(node.value, dict) else enumerate(node.value):
        yield (*place, key), child.value
        yield from _written(child, (*place, key))


def _is_ours(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and any(Path(frames[-1].filename).is_relative_to(room) for room in _OURS)


def _kept(error: BaseException) -> str:
    try:
        with tempfile.NamedTemporaryFile("w", prefix="evenkeel-", suffix=".txt", delete=False) as file:
            file.writelines(traceback.format_exception(error))
    except OSError:
        return ""
    return f" Its traceback: {file.name}"
