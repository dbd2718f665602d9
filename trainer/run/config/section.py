"""What every section of a run's YAML file is made of: strict models, texts, counts, and parts by name."""

import math
import os
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeGuard

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic_core import InitErrorDetails

from evenkeel.trainer.run.config.problems import problem, raise_all


def _without_zero_byte(text: str) -> str:
    if "\0" in text:
        what = f"is {text!r}, and the operating system ends a name at the character with code 0."
        raise_all([problem("zero-byte", what, "Remove that character.")])
    return text


def _own_folder(name: str) -> str:
    if not re.fullmatch(r"[^/\\\s]+", name):
        what = f"is {name!r}, and the name of a folder is one word without spaces and slashes."
        raise_all([problem("folder-name", what, "Write one word.")])
    if name in (".", ".."):
        what = f"is {name!r}, which every folder has: the run would be written among other files."
        raise_all([problem("no-folder-of-its-own", what, "Write another name.")])
    return name


Text = Annotated[str, Field(min_length=1), AfterValidator(_without_zero_byte)]
Name = Annotated[str, AfterValidator(_without_zero_byte), AfterValidator(_own_folder)]
"""The name of a folder that the run makes."""
Count = Annotated[int, Field(ge=1)]


def expanded(path: str) -> str:
    """``path`` with its ``~``, ``$NAME`` and ``${NAME}`` replaced; unknown variables stay as they are."""
    return os.path.expandvars(os.path.expanduser(path))  # noqa: PTH111 pathlib raises for an unknown user


def not_expanded(path: str, *location: str) -> Iterator[InitErrorDetails]:
    """A problem where a path keeps an unknown variable or user, unless a file of that very name exists."""
    left = expanded(path)
    if os.path.exists(path):  # noqa: PTH110 pathlib raises for a name that is too long
        return
    if found := re.search(r"\$(?:\{([^}]*)\}|([A-Za-z_]\w*))", left):
        what = f"is {path!r} with the variable {found[1] or found[2]}, which is not set."
        yield problem("unset-variable", what, "Set it, or write the path out.", location)
    elif left.startswith("~"):
        what = f"is {path!r}, and there is no user {left[1:].partition('/')[0]} on this machine."
        yield problem("unknown-user", what, "Write the path out.", location)


def _local_path(path: str) -> str:
    raise_all(not_expanded(path))
    return path


LocalPath = Annotated[Text, AfterValidator(_local_path)]
"""A path (or a hub id) in which ``~`` and variables were expanded when the file was read."""


def _part(value: Any) -> Any:
    if isinstance(value, str) and value.strip():
        return value
    if not isinstance(value, dict):
        what = f"is {value!r}, and a part is chosen by its name."
        instead = "Write its name, package.module:attribute, or {name: …, option: …}."
        raise_all([problem("part-without-name", what, instead)])
    elif not isinstance(value.get("name"), str) or not value["name"].strip():
        what = f"has the keys {', '.join(value) or '(none)'} but no `name` that says which part they are options of."
        raise_all([problem("part-without-name", what, "Write {name: …, option: …}.")])
    return value


def finite(value: Any) -> Any:
    """``value`` as it is, or pydantic's error for every infinite number or NaN at any depth of it."""
    raise_all(not_finite(value, ()))
    return value


def not_finite(value: Any, location: tuple[str | int, ...]) -> Iterator[InitErrorDetails]:
    """A problem for every infinite number or NaN at any depth of ``value``, which is at ``location``."""
    if isinstance(value, float) and not math.isfinite(value):
        yield problem("finite-number", f"is {value}, and a finite number is needed.", "Write one.", location)
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from not_finite(item, (*location, key))


def is_by_task(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether ``value`` names a part for each of several tasks, and is not one part."""
    return isinstance(value, dict) and bool(value) and "name" not in value


def _by_task(value: Any) -> Any:
    return {task: _part(part) for task, part in value.items()} if is_by_task(value) else _part(value)


Part = Annotated[Any, BeforeValidator(_part, json_schema_input_type=str | dict[str, Any]), AfterValidator(finite)]
"""A part by name (text) or by name with options (mapping); the registry checks that it exists."""
PartByTask = Annotated[
    Any, BeforeValidator(_by_task, json_schema_input_type=str | dict[str, Any]), AfterValidator(finite)
]
"""A part, or a mapping task → part."""


def part_name(part: Any) -> str:
    """The name that a part is chosen by; of ``package.module:attribute`` the attribute."""
    name: str = part["name"] if isinstance(part, dict) else part
    return name.rpartition(":")[2]


class Section(BaseModel):
    """Frozen and strict: no value is converted, no key is ignored. The text under a field says what it means."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def meanings_of(options: type) -> Callable[[dict[str, Any]], None]:
    """For ``json_schema_extra``: what the dataclass ``options`` says of a field is its meaning in a section too."""

    def added(schema: dict[str, Any]) -> None:
        for name, declared in TypeAdapter(options).json_schema()["properties"].items():
            if name in schema["properties"]:
                schema["properties"][name]["description"] = declared["description"]

    return added
