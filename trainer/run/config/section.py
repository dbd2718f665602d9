"""What every section of a run's YAML file is made of: strict models, texts, counts, and parts by name."""

import os
import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import InitErrorDetails

from trainer.run.config.problems import refusal, refuse
from trainer.run.config.trl_arguments import finite


def _printed(text: str) -> str:
    if "\0" in text:
        what = f"is {text!r}, and the character of code 0 ends a name for the system."
        refuse([refusal(text, what, "Take that character out.")])
    return text


def _no_folder(name: str) -> str:
    if name in (".", ".."):
        what = f"is {name!r}, which is a folder of every folder: the run would be written into what is there."
        refuse([refusal(name, what, "Write a name of its own.")])
    return name


Text = Annotated[str, Field(min_length=1), AfterValidator(_printed)]
Name = Annotated[str, Field(pattern=r"^[^/\\\s]+$"), AfterValidator(_printed), AfterValidator(_no_folder)]
"""Of a folder that is made."""
Count = Annotated[int, Field(ge=1)]


def expanded(path: str) -> str:
    """``path`` with its ``~``, ``$NAME`` and ``${NAME}`` replaced; what the environment does not hold stays."""
    return os.path.expandvars(os.path.expanduser(path))  # noqa: PTH111 of a user that there is not pathlib raises


def not_expanded(path: str, *location: str) -> Iterator[InitErrorDetails]:
    """What is wrong with a path in which a variable or a user is left that there is not, unless it exists so."""
    left = expanded(path)
    if os.path.exists(path):  # noqa: PTH110 of a name that is too long pathlib raises
        return
    if found := re.search(r"\$(?:\{([^}]*)\}|([A-Za-z_]\w*))", left):
        what = f"is {path!r} with the variable {found[1] or found[2]}, which is not set."
        yield refusal(path, what, "Set it, or write the path out.", location)
    elif left.startswith("~"):
        what = f"is {path!r}, and there is no user {left[1:].partition('/')[0]} on this machine."
        yield refusal(path, what, "Write the path out.", location)


def _local_path(path: str) -> str:
    refuse(not_expanded(path))
    return path


LocalPath = Annotated[str, Field(min_length=1), AfterValidator(_printed), AfterValidator(_local_path)]
"""A path (or a hub id) in which ``~`` and variables were expanded when the file was read."""


def _part(value: Any) -> Any:
    if isinstance(value, str) and value.strip():
        return value
    if not isinstance(value, dict):
        what = f"is {value!r}, and a part is chosen by its name."
        refuse([refusal(value, what, "Write its name, package.module:attribute, or {name: …, option: …}.")])
    elif not isinstance(value.get("name"), str) or not value["name"].strip():
        what = f"has the keys {', '.join(value) or '(none)'} but no `name` that says which part they are options of."
        refuse([refusal(value, what, "Write {name: …, option: …}.")])
    return value


Part = Annotated[Any, BeforeValidator(_part), AfterValidator(finite)]
"""A part by name (text) or by name with options (mapping); whether it exists is the registry's to say."""


def part_name(part: Any) -> str:
    """The name that a part is chosen by; of ``package.module:attribute`` the attribute."""
    name: str = part["name"] if isinstance(part, dict) else part
    return name.rpartition(":")[2]


def _rollouts(value: Any) -> Any:
    if value not in ("all", "off") and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        what = f"is {value!r}, which says neither which rollouts are kept nor how many of each batch."
        refuse([refusal(value, what, "Write all, off, or how many: 64.")])
    return value


RolloutCount = Annotated[Any, BeforeValidator(_rollouts)]
"""How many rollouts of each batch are kept: ``all``, ``off`` or a whole number above 0."""


class Section(BaseModel):
    """Frozen and strict: no value is converted, no key is ignored."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)
