"""Types of a run file's sections: strict models, texts, counts, paths, and parts by name."""

import math
import os
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeGuard

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic_core import InitErrorDetails

from evenkeel.trainer.run.config.problems import problem, raise_all


def _folder_name(name: str) -> str:
    if not re.fullmatch(r"[^.~/\\\s\0$][^/\\\s\0$]*", name):
        raise_all([problem("folder-name", f"is {name!r:.60}, which names no folder.", "Write one word.")])
    return name


Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, AfterValidator(_folder_name)]
"""The name of a folder that the run makes."""
Count = Annotated[int, Field(ge=1)]


def expanded(path: str) -> str:
    """``path`` with its ``~``, ``$NAME`` and ``${NAME}`` replaced; unknown variables stay as they are."""
    return os.path.expandvars(os.path.expanduser(path))  # noqa: PTH111 pathlib raises for an unknown user


def _local_path(path: str) -> str:
    is_there = os.path.exists(path)
    if not is_there and (found := re.search(r"\$\{[^}]*\}|\$[A-Za-z_]\w*|^~[^/]*", expanded(path))):
        what = f"is {path!r}, and {found[0]} is not set on this machine."
        raise_all([problem("unset-variable", what, "Write the path out.")])
    return path


LocalPath = Annotated[Text, Field(pattern=r"^[^\x00]*$"), AfterValidator(_local_path)]
"""A path (or a hub id) in which ``~`` and variables were expanded when the file was read."""


def _part(value: Any) -> Any:
    name = value.get("name") if isinstance(value, dict) else value
    if not isinstance(name, str) or not name.strip():
        raise_all([problem("part-without-name", f"is {value!r:.60}, without a name.", "Write {name: …, option: …}.")])
    return value


def finite(value: Any) -> Any:
    """``value`` unchanged; raises pydantic's error for every infinity or NaN in it, at any depth."""
    raise_all(_not_finite(value, ()))
    return value


def _not_finite(value: Any, location: tuple[str | int, ...]) -> Iterator[InitErrorDetails]:
    if isinstance(value, float) and not math.isfinite(value):
        yield problem("finite-number", f"is {value}, not a finite number.", "", location)
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from _not_finite(item, (*location, key))


def is_by_task(value: Any) -> TypeGuard[dict[str, Any]]:
    """``value`` is a mapping task → part, not one part."""
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
    """The name of a part; of ``package.module:attribute`` the attribute."""
    name: str = part["name"] if isinstance(part, dict) else part
    return name.rpartition(":")[2]


class Section(BaseModel):
    """Frozen and strict: no value is converted, no key is ignored. The text under a field describes it."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def meanings_of(options: type) -> Callable[[dict[str, Any]], None]:
    """For ``json_schema_extra``: fields take their descriptions from the dataclass ``options``."""

    def added(schema: dict[str, Any]) -> None:
        for name, declared in TypeAdapter(options).json_schema()["properties"].items():
            if name in schema["properties"]:
                schema["properties"][name]["description"] = declared["description"]

    return added
