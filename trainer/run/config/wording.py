"""pydantic's errors as problems, each at the file and line where the value is written, with what to write instead."""

import re
import typing
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from evenkeel.errors import Problem, closest, suggest
from evenkeel.rewards.noise import RewardNoise
from evenkeel.trainer.run.config.data_section import Source
from evenkeel.trainer.run.config.keys import IN_ANOTHER_SECTION, OTHERWISE, advice_for, meant_by
from evenkeel.trainer.run.config.schema import RunConfig
from evenkeel.trainer.run.config.trl_arguments import (
    REASONS,
    grpo_arguments,
    lora_arguments,
    revision_options,
    teacher_options,
)
from evenkeel.trainer.run.config.yaml_document import Node, scalar

Path = tuple[str | int, ...]
_MOST_LISTED = 20
"""Words or keys that a message lists."""
_INTEGER, _NUMBER = ("an integer", "a whole number such as 1"), ("a number", "a number such as 0.5")
_MAPPING = ("a mapping (key: value)", "a mapping such as {key: value}")
_TYPES = {
    "bool_type": ("true or false", "true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), _INTEGER),
    **dict.fromkeys(("float_type", "float_parsing"), _NUMBER),
    "string_type": ("a string", "text such as abc"),
    "list_type": ("a list", "a list such as [a, b]"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _MAPPING),
}
"""pydantic's name of a value of another type → the type that is needed, and what to write."""
_CHECKED_BY: dict[str, Callable[[], type[BaseModel] | None]] = {
    "trl": grpo_arguments,
    "lora": lora_arguments,
    "revision": revision_options,
    "teacher": teacher_options,
    "noise": lambda: RewardNoise,
    "train": lambda: Source,
    "test": lambda: Source,
}


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
    problems = []
    above = {place[:end] for place in places for end in range(len(place))}
    unknown: Counter[Path] = Counter()
    for place, details in places.items():
        # The members of a union that had another shape than the value say nothing about the member that was meant.
        if place in above:
            continue
        unknown[place[:-1]] += details[0]["type"] == "extra_forbidden"
        if unknown[place[:-1]] > _MOST_LISTED:
            continue
        origin, found = tree.origin, tree
        for key in place:
            if (inside := found.child(key)) is None:
                break
            origin, found = inside.origin, inside
        code, what, instead = _words(place, details, model)
        problems.append(Problem(place, what, instead, origin, code=code))
    for section, number in unknown.items():
        if number > _MOST_LISTED:
            what = f"{number - _MOST_LISTED:,} more keys here are unknown, and nothing else is looked at."
            problems.append(Problem(section, what, "", tree.origin, code="unknown-key"))
    return sorted(problems, key=lambda each: (each.origin.source, each.origin.line or 0) if each.origin else ("", 0))


def _words(path: Path, details: Sequence[Any], model: type[BaseModel]) -> tuple[str, str, str]:
    """Code, what is wrong, what to write instead."""
    first, key = details[0], str(path[-1]) if path else ""
    value, context = first["input"], first.get("ctx", {})
    if "instead" in context:
        return first["type"], context["what"], context["instead"]
    if first["type"] == "missing":
        return "missing-key", "is missing.", f"Write `{key}: …`."
    if first["type"] == "extra_forbidden":
        return _unknown_key(path, model)
    code, shown = first["type"].replace("_", "-"), _shown(value)
    expected = [detail["ctx"]["expected"] for detail in details if detail["type"] == "literal_error"]
    if words := [word for each in expected for word in re.findall(r"'([^']*)'", each)]:
        if key == "report_to":
            tracker = value if isinstance(value, str) else "wandb"
            return "list-type", f"is {shown}, and a list is needed.", f"Write report_to: [{tracker}], or the word none."
        near = f"{suggest(value, words)} " if isinstance(value, str) and closest(value, words) else ""
        listed = f"The words are {', '.join(words)}." if len(words) <= _MOST_LISTED else "Write another word."
        return "unknown-word", f"is {shown}, which is not one of the known words.", f"{near}{listed}"
    fields = _fields(path[:-1], model)
    if not (others := [detail for detail in details if detail["type"] not in _TYPES]):
        needed, written = zip(*dict.fromkeys(_TYPES[detail["type"]] for detail in details), strict=True)
        instead = _instead(key, value, {detail["type"] for detail in details})
        if not instead:
            leave_out = value is None and key in fields and not fields[key].is_required()
            instead = f"Write {', or '.join(written)}{f', or leave `{key}` out' * leave_out}."
        return code, f"is {shown}, and {' or '.join(needed)} is needed.", instead
    # Of a union, the members whose type the value has: "Input should be True", "List should have at least 1 item …"
    if expected == ["True"]:
        return code, f"is {shown}, and only true is possible.", "Write true."
    shortened = [re.sub(r" after validation.*", "", detail["msg"]) for detail in others]
    wanted = [re.sub(r"^\w+ should (be )?", "", message) for message in shortened]
    verb = "should" if wanted[0].startswith("have") else "should be"
    what = f"is {shown}, and {verb} {' or '.join(dict.fromkeys(wanted))}."
    if first["type"].startswith(("greater", "less")):
        default = fields[key].default if key in fields else None
        default = "" if default in (None, PydanticUndefined) else f"The default is {default}."
        return code, what, f"{REASONS.get(key, '')} {default}".strip()
    return code, what, ""


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "empty" if value is None else str(value).lower()
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:59]}…"
    return f"the text {text}" if isinstance(value, str) else f"the mapping {text}" if isinstance(value, dict) else text


def _instead(key: str, value: Any, kinds: set[str]) -> str:
    """What to write, where the value itself shows what was meant."""
    if isinstance(value, str) and kinds & {"int_type", "float_type", "int_parsing", "float_parsing"}:
        for text, why in ((value, ", without quotes."), (value.replace("_", ""), "; YAML 1.2 has no _ in numbers.")):
            if isinstance(scalar(text), int | float):
                return f"Write {key}: {text}{why}"
        return f"Write {key}: null for no value." if value.lower() in ("none", "nil") else ""
    if isinstance(value, str) and "bool_type" in kinds:
        return f"Write {key}: true or {key}: false; in YAML 1.2 yes, no, on and off are text."
    if isinstance(value, float) and "int_type" in kinds and value.is_integer():
        return f"Write {key}: {int(value)}."
    if not isinstance(value, str | list | dict | None) and kinds == {"string_type"}:
        return f"Write it in quotes: '{str(value).lower() if isinstance(value, bool) else value}'."
    if isinstance(value, str | dict) and kinds == {"list_type"}:
        item = value if isinstance(value, str) else f"{{{next(iter(value), '…')}: …}}"
        return f"Write a list, also for one: {key}: [{item}]."
    return ""


def _unknown_key(path: Path, model: type[BaseModel]) -> tuple[str, str, str]:
    code, key, what = "unknown-key", str(path[-1]), "there is no such key."
    if path[0] == "trl" and key in IN_ANOTHER_SECTION:
        what = "belongs to another section of the file, which would overrule it."
        return "in-another-section", what, IN_ANOTHER_SECTION[key]
    known = [*_fields(path[:-1], model), *(["extends"] if len(path) == 1 and model is RunConfig else [])]
    names = known if len(known) <= _MOST_LISTED else ["the fields of trl.GRPOConfig or peft.LoraConfig"]
    nearest = suggest(key, known, f"The keys here are {', '.join(names)}.")
    if model is not RunConfig:
        return code, what, nearest
    section = ".".join(str(part) for part in path[:-1] if isinstance(part, str))
    if meant := meant_by(section, key):
        return code, what, meant
    from evenkeel.trainer.algorithms.registry import KINDS  # imports torch, which takes seconds

    kinds = {name: kind for kind, parts in KINDS.items() for name in parts.built_in()}
    plain = ("algorithm", "model", "evaluation", "logging", "speed", "stopping", "data")
    fields: dict[str, set[str]] = {"": {*RunConfig.model_fields}}
    fields |= {each: {*_fields((*each.split("."),), RunConfig)} for each in ("trl", "model.lora", "data.train", *plain)}
    if advice := advice_for(section, key, fields, kinds):
        return "in-another-section", what, advice
    return code, what, nearest if closest(key, known) else OTHERWISE.get(section, nearest).format(key=key)


def _fields(section: Path, model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of the model that checks a place in the data, below the ``model`` of the whole."""
    for key in section:
        if isinstance(key, str) and key in model.model_fields:
            model = _CHECKED_BY.get(key, lambda: None)() or _model_in(model.model_fields[key].annotation) or model
    return model.model_fields


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for member in typing.get_args(annotation) if (found := _model_in(member))), None)
