"""pydantic's errors in the house's words, each at the file and line where the value was written."""

import re
import typing
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from rewards.registry import closest
from trainer.run.config.data_section import NAME_OF_A_SOURCE, Source
from trainer.run.config.near_misses import MEANT, elsewhere, elsewhere_by_another_name, in_another_form, meant_here
from trainer.run.config.problems import Origin, Problem
from trainer.run.config.removed_names import REMOVED
from trainer.run.config.schema import RunConfig
from trainer.run.config.trl_arguments import ELSEWHERE, REASONS, grpo_arguments, lora_arguments, revision_options
from trainer.run.config.yaml_document import Node, scalar

Path = tuple[str | int, ...]
_WANTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "list_type": "a list",
    "finite_number": "a finite number",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number that is {ge:g} or more",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number that is {le:g} or less",
    "too_short": "at least {min_length} entries",
    "string_too_short": "text that is not empty",
    "string_pattern_mismatch": "one word without spaces and slashes",
    "literal_error": "one of {expected}",
}
_MOST_WORDS_LISTED = 10
_CHECKED_BY: dict[str, Callable[[], type[BaseModel] | None]] = {
    "trl": grpo_arguments,
    "lora": lora_arguments,
    "revision": revision_options,
    "train": lambda: Source,
    "test": lambda: Source,
}


def problems_of(error: ValidationError, tree: Node, model: type[BaseModel] = RunConfig) -> list[Problem]:
    """One problem for each wrong place in the data that ``model`` refused, in the order of the lines."""
    places: dict[Path, list[Any]] = defaultdict(list)
    for detail in error.errors():
        places[_data_path(detail["loc"], detail["type"], tree)].append(detail)
    # The members of a union that had another shape than the value say nothing about the member that was meant.
    deepest = [path for path in places if not any(other[: len(path)] == path and other != path for other in places)]
    problems = [_problem(path, places[path], tree, model) for path in deepest]
    return sorted(problems, key=lambda problem: _line_of(problem.origin))


def _line_of(origin: Origin | None) -> tuple[str, int]:
    return ("", 0) if origin is None else (origin.source, origin.line or 0)


def _data_path(location: Path, kind: str, tree: Node) -> Path:
    """The place in the data, without the names that pydantic adds for the members of a union."""
    path: list[str | int] = []
    node = tree
    for index, key in enumerate(location):
        below = node.child(key)
        if below is not None:
            node = below
            path.append(key)
        elif kind in ("missing", "extra_forbidden") and index == len(location) - 1:
            path.append(key)
    return tuple(path)


def _problem(path: Path, details: Sequence[Any], tree: Node, model: type[BaseModel]) -> Problem:
    origin = tree.origin
    node: Node | None = tree
    for key in path:
        node = node.child(key) if node else None
        origin = node.origin if node else origin
    what, instead = _words(path, details, model)
    return Problem(".".join(map(str, path)), what, instead, origin)


def _words(path: Path, details: Sequence[Any], model: type[BaseModel]) -> tuple[str, str]:
    first = details[0]
    key, value = (str(path[-1]) if path else ""), first["input"]
    if first["type"] == "refused":
        return first["ctx"]["what"], first["ctx"]["instead"]
    if first["type"] == "missing":
        return "is missing.", f"Write `{key}: …`."
    if first["type"] == "extra_forbidden":
        return _unknown_key(path, model)
    if choices := [choice for detail in details for choice in _choices(detail)]:
        return _no_choice(key, value, choices)
    wanted = [_wanted(detail) for detail in details]
    what = f"is {_shown(value)}, and {' or '.join(dict.fromkeys(wanted))} is needed."
    if first["type"].startswith(("greater", "less")):
        fields = _fields(path[:-1], model)
        default = f" The default is {fields[key].default}." if key in fields else ""
        return what, f"{REASONS.get(key, 'Write such a number.')}{default}"
    return what, _instead(key, value, wanted)


def _wanted(detail: Any) -> str:
    words = _WANTED.get(detail["type"], detail["msg"]).format(**detail.get("ctx", {}))
    if detail["type"] == "string_pattern_mismatch" and detail["ctx"]["pattern"] == NAME_OF_A_SOURCE:
        return "a name of letters, digits, `_`, `-` and `.`"
    return words.replace("at least 1 entries", "at least one entry")


def _choices(detail: Any) -> list[str]:
    return re.findall(r"'([^']*)'", detail["ctx"]["expected"]) if detail["type"] == "literal_error" else []


def _no_choice(key: str, value: Any, choices: Sequence[str]) -> tuple[str, str]:
    if isinstance(value, list | dict) or value is None:
        return f"is {_shown(value)}, and one word is needed.", f"The words are {', '.join(choices)}."
    what = f"is {_shown(value)}, which is none of the known words."
    if key == "report_to":
        return what, f"Write a list, like report_to: [{value}], or the word none."
    longer = [choice for choice in choices if choice.startswith(str(value))]
    near = longer or closest(str(value), choices, n=3)
    if len(choices) > _MOST_WORDS_LISTED and near:
        return what, f"Did you mean {' or '.join(near[:3])}?"
    return what, f"{f'Did you mean {near[0]}? ' if near else ''}The words are {', '.join(choices)}."


def _unknown_key(path: Path, model: type[BaseModel]) -> tuple[str, str]:
    key, what = str(path[-1]), "there is no such key."
    if path[0] == "trl" and key in ELSEWHERE:
        return "belongs to another place in the file, which would overrule it.", ELSEWHERE[key]
    known = [*_fields(path[:-1], model), *(["extends"] if len(path) == 1 and model is RunConfig else [])]
    near = closest(key, known)
    names = known if len(known) <= 2 * _MOST_WORDS_LISTED else ["the fields of trl.GRPOConfig or peft.LoraConfig"]
    listed = f"Did you mean {near[0]}?" if near else f"The keys here are {', '.join(names)}."
    if model is not RunConfig:
        return what, listed
    section = ".".join(str(part) for part in path[:-1] if isinstance(part, str))
    if key in REMOVED and key not in MEANT.get(section, ()) and not section.startswith(("data", "rewards")):
        return "is no argument of TRL 1.16's GRPOConfig.", REMOVED[key]
    if (meant := meant_here(section, key)) is not None:
        return what, f"Did you mean {meant}?"
    fields = _fields_of_sections()
    advice = in_another_form(section, key, _strategies()) or elsewhere(section, key, fields)
    if advice is None and not near:
        advice = elsewhere_by_another_name(section, key, fields)
    if advice is None:
        return what, listed
    of_trl = " it is an argument of GRPOConfig." if "under `trl:`" in advice else ""
    return f"there is no such key here{';' if of_trl else '.'}{of_trl}", advice


def _fields_of_sections() -> dict[str, Collection[str]]:
    """The keys of every section of a run that is no list, by its dotted name."""
    sections = {"": (), "trl": ("trl",), "model.lora": ("model", "lora"), "data.train": ("data", "train")}
    named = {name: (name,) for name in ("algorithm", "model", "evaluation", "logging", "speed", "stopping", "data")}
    return {name: set(_fields(path, RunConfig)) for name, path in {**sections, **named}.items()}


def _strategies() -> dict[str, str]:
    """Name of a built-in strategy → its kind. Imports torch, which takes seconds."""
    from trainer.algorithms.registry import KINDS

    return {name: kind for kind, parts in KINDS.items() for name in parts.built_in()}


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


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:59]}…"
    return f"the text {text}" if isinstance(value, str) else f"the mapping {text}" if isinstance(value, dict) else text


def _instead(key: str, value: Any, wanted: Sequence[str]) -> str:
    kinds = " ".join(wanted)
    if value is None:
        return f"Write {wanted[0]}, or leave `{key}` out."
    if isinstance(value, str) and "number" in kinds:
        return _number_from_text(key, value)
    if isinstance(value, str) and "true or false" in kinds:
        return f"Write {key}: true or {key}: false; in YAML 1.2 words like yes, no, on and off are text."
    if isinstance(value, float) and "whole number" in kinds and value.is_integer():
        return f"Write {key}: {int(value)}."
    if not isinstance(value, str | list | dict) and set(wanted) == {"text"}:
        return f"Write it in quotes: '{str(value).lower() if isinstance(value, bool) else value}'."
    if isinstance(value, str) and "a list" in wanted:
        return f"Write it as a list, also of one: {key}: [{value}]."
    if isinstance(value, dict) and "a list" in wanted:
        first = next(iter(value), "…")
        return f"Write it as a list, also of one: [{{{first}: …}}]."
    return f"Write {' or '.join(dict.fromkeys(wanted))}."


def _number_from_text(key: str, text: str) -> str:
    if isinstance(scalar(text), int | float):
        return f"Write {key}: {text}, without quotes."
    if isinstance(scalar(text.replace("_", "")), int | float):
        return f"Write {key}: {text.replace('_', '')}; YAML 1.2 has no underscores in numbers."
    if text.lower() in ("none", "nil"):
        return f"Write {key}: null if you mean no value, and a number otherwise."
    return "Write a number."
