"""Rows of the library's tasks, with entries as JSON that keeps tuples, sets and keys that are not strings."""

import importlib.util
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from evenkeel.errors import suggest

# Per requested row, for tasks with few different questions.
MOST_DRAWS = 10

MISSING = 'reasoning_gym is not installed. Run pip install -e ".[reasoning-gym]", or name another task.'


def is_installed() -> bool:
    """True if the optional extra is installed. Does not import it, which takes seconds."""
    return importlib.util.find_spec("reasoning_gym") is not None


def reasoning_gym_rows(
    *,
    part: Literal["train", "test"],
    task: str,
    train: Annotated[int, Field(ge=0)],
    test: Annotated[int, Field(ge=0)],
    seed: int,
    config: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Rows of one task, first ``test`` and then ``train`` others, without duplicate questions.

    Entry ``i`` of the library depends on ``seed + i`` alone, so neighboring seeds share nearly all entries: give both
    parts of a run the same seed and counts.

    Args:
        part: the part to return.
        task: one of the library's names, such as ``knights_knaves`` or ``chain_sum``.
        config: options of the task, see the library.

    Raises:
        ValueError: the extra is missing, the task or an option is unknown, or the task has too few questions.
    """
    if not is_installed():
        raise ValueError(MISSING)
    options = {**(config or {}), "seed": seed, "size": (train + test) * MOST_DRAWS}
    dataset = _dataset(task, options)
    entries: dict[str, Any] = {}
    for index in range(options["size"]):
        entry = dataset[index]
        entries.setdefault(entry["question"], entry)
        if len(entries) == train + test:
            break
    else:
        raise ValueError(f"{task} has {len(entries)} different questions, not {train + test}. Ask for fewer.")
    rows = [
        {"prompt": question, "reference": {"task": task, "config": as_text(options), "entry": as_text(entry)}}
        for question, entry in entries.items()
    ]
    return rows[:test] if part == "test" else rows[test:]


def _dataset(task: str, options: Mapping[str, Any]) -> Any:
    import reasoning_gym
    from reasoning_gym.factory import DATASETS

    if task not in DATASETS:
        raise ValueError(f"reasoning_gym has no task {task!r}. {suggest(task, DATASETS)}")
    try:
        return reasoning_gym.create_dataset(task, **options)
    except (AssertionError, TypeError, ValueError) as error:  # the library checks options by assert
        raise ValueError(f"{task} refuses its config: {error}") from error


def as_text(value: Any) -> str:
    """``value`` as JSON from which `inside_sandbox.restored` makes it again; other types than JSON's become texts."""
    return json.dumps(_tagged(value), default=str)


def _tagged(value: Any) -> Any:
    if isinstance(value, tuple):
        return {"__tuple__": [_tagged(item) for item in value]}
    if isinstance(value, set | frozenset):
        return {"__set__": [_tagged(item) for item in sorted(value, key=repr)]}
    if isinstance(value, list):
        return [_tagged(item) for item in value]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _tagged(item) for key, item in value.items()}
        return {"__pairs__": [[_tagged(key), _tagged(item)] for key, item in value.items()]}
    return value
