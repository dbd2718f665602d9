"""pydantic's errors as problems, each at the file and line where the value is written."""

import re
import typing
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic.fields import FieldInfo

from evenkeel.errors import Problem, closest, suggest
from evenkeel.trainer.run.config.keys import FOREIGN, IN_ANOTHER_SECTION
from evenkeel.trainer.run.config.schema import RunConfig
from evenkeel.trainer.run.config.trl_arguments import CheckedBy
from evenkeel.trainer.run.config.yaml_document import Node

Path = tuple[str | int, ...]
_MOST = 20
"""Most problems that are reported, and most words or keys that one of them lists."""
SECTIONS: tuple[Path, ...] = (
    *((), ("trl",), ("model", "lora"), ("data", "train"), ("algorithm",), ("model",), ("evaluation",)),
    *(("logging",), ("speed",), ("stopping",), ("data",)),
)


def problems_of(error: ValidationError, tree: Node, model: type[BaseModel] = RunConfig) -> list[Problem]:
    """One problem for each wrong place in the data that ``model`` refused, in the order of the lines."""
    places: dict[Path, list[Any]] = defaultdict(list)
    for detail in error.errors():
        # pydantic's place, without the names that it adds for the members of a union
        path: list[str | int] = []
        node = tree
        for index, key in enumerate(location := detail["loc"]):
            if (below := node.child(key)) is not None:
                node = below
                path.append(key)
            elif detail["type"] in ("missing", "extra_forbidden") and index == len(location) - 1:
                path.append(key)
        places[tuple(path)].append(detail)
    # The members of a union that had another shape than the value say nothing about the member that was meant.
    above = {place[:end] for place in places for end in range(len(place))}
    problems, wrong = [], [place for place in places if place not in above]
    for place in wrong[:_MOST]:
        nodes = [found for end in range(len(place), 0, -1) if (found := tree.at(place[:end])) is not None]
        code, what, instead = _words(place, places[place], model)
        problems.append(Problem(place, what, instead, nodes[0].origin if nodes else tree.origin, code=code))
    if len(wrong) > _MOST:
        what = f"there are {len(wrong) - _MOST:,} more problems."
        problems.append(Problem((), what, "", tree.origin, code="more-problems"))
    return sorted(problems, key=lambda each: (each.origin.source, each.origin.line or 0) if each.origin else ("", 0))


def _words(path: Path, details: Sequence[Any], model: type[BaseModel]) -> tuple[str, str, str]:
    """Code, what is wrong, what to write instead."""
    first = details[0]
    value, context = first["input"], first.get("ctx", {})
    if "instead" in context:
        return first["type"], context["what"], context["instead"]
    if first["type"] == "missing":
        return "missing-key", "is missing.", ""
    if first["type"] == "extra_forbidden":
        return _unknown_key(path, model)
    shown = "empty" if value is None else f"{value!r:.60}"
    expected = [detail["ctx"]["expected"] for detail in details if detail["type"] == "literal_error"]
    words = [word for each in expected for word in re.findall(r"'([^']*)'", each)]
    if words and len(expected) == len(details):
        listed = f"Write one of {', '.join(words)}." if len(words) <= _MOST else "It is not a known word."
        return "unknown-word", f"is {shown}.", suggest(str(value), words, listed)
    wanted = dict.fromkeys(re.sub(r"^\w+ should | after validation.*", "", detail["msg"]) for detail in details)
    return first["type"].replace("_", "-"), f"is {shown}, and should {' or '.join(wanted)}.", ""


def _unknown_key(path: Path, model: type[BaseModel]) -> tuple[str, str, str]:
    *above, key = path
    key, known, what = str(key), fields_of(path[:-1], model), "there is no such key."
    nearest = suggest(key, known, f"The keys here are {', '.join([*known][:_MOST])}{', …' * (len(known) > _MOST)}.")
    if model is not RunConfig:
        return "unknown-key", what, nearest
    is_owned = above == ["trl"] and key in IN_ANOTHER_SECTION
    meant = IN_ANOTHER_SECTION[key] if is_owned else FOREIGN.get(key)
    if meant is None and not closest(key, known):
        meant = key_of(key)
    code = "in-another-section" if is_owned or (meant and key not in FOREIGN) else "unknown-key"
    return code, what, nearest if meant is None else f"Write {meant} instead." if meant else "Leave it out."


def key_of(name: str) -> str | None:
    """The dotted key of a run file whose last part is ``name``, of the section that is asked first; or ``None``."""
    return next((".".join((*map(str, each), name)) for each in SECTIONS if name in fields_of(each)), None)


def fields_of(section: Path, model: type[BaseModel] = RunConfig) -> dict[str, FieldInfo]:
    """The fields of the model that checks a place in the data, below the ``model`` of the whole."""
    for key in section:
        if isinstance(key, str) and (field := model.model_fields.get(key)):
            found = (_model_in(each) for each in (*field.metadata, field.annotation))
            model = next((each for each in found if each), model)
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(declared: Any) -> type[BaseModel] | None:
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        return declared
    if isinstance(declared, CheckedBy):
        return declared.model()
    if isinstance(declared, BeforeValidator):
        return _model_in(declared.json_schema_input_type)
    members = reversed(typing.get_args(declared))
    return next((found for member in members if (found := _model_in(member))), None)
