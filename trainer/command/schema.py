"""JSON Schema (draft 2020-12) of run, sweep or claim files, with which editors complete and check them.

    evenkeel schema run > run.schema.json

Shipped files name the shipped schema in their first line, `# yaml-language-server: $schema=…`; `evenkeel configs copy`
copies it too. One that you print also knows the parts of installed packages and the arguments of your TRL. Required
keys, and keys that depend on one another, are not in it: `evenkeel check` finds those.
"""

import argparse
import inspect
import json
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter

from evenkeel.rewards.registry import Kind
from evenkeel.trainer.command import command_line

Schema = dict[str, Any]

_OWN_PART = r"^[^:/\\]+:[^:]+$"
_EXTENDS = "One file, relative to this one, whose keys are inherited: own keys win, mappings merge, lists replace."
_OF_A_FIELD = ("description", "default")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 printed, 2 refused."""
    print(json.dumps(SCHEMAS[parser().parse_args(argv).kind](), indent=1, ensure_ascii=False))
    return 0


def parser() -> argparse.ArgumentParser:
    whole = command_line(__name__, __doc__)
    whole.add_argument("kind", nargs="?", default="run", choices=(*SCHEMAS,), help="of file; default: run")
    return whole


def run_schema() -> Schema:
    """The schema of run files, also of those that are only evaluated."""
    return _of_files(_extending(_run_definitions(), "Run"), "Run")


def sweep_schema() -> Schema:
    """The schema of sweep files; settings of a run are dotted keys in them."""
    from evenkeel.trainer.lab.sweeps.schema import RESERVED_KEYS, Sweep

    run = _run_definitions()
    settings, free = {}, []
    for path, pointer, node in _settings(run, "Run"):
        if path not in RESERVED_KEYS:
            settings[path] = {"$ref": pointer}
        if _has_places(node, run):
            free.append(re.escape(path))
    beneath, values = rf"^({'|'.join(free)})\.", {"type": "array", "minItems": 1}
    grid = {path: {**values, "items": node} for path, node in settings.items()}
    dotted = {
        "Settings": _object(settings, patternProperties={beneath: True}),
        "Values": _object(grid, patternProperties={beneath: values}),
    }
    sweep = _definitions(Sweep)
    keys, tuned = sweep["Sweep"]["properties"], sweep["Tuning"]["properties"]
    keys["executor"]["anyOf"] = keys["executor"].pop("oneOf")  # the rest may be in a base
    keys["variants"]["additionalProperties"] = {"anyOf": [{"$ref": "#/$defs/Settings"}, {"type": "null"}]}
    for node, name in ((keys["grid"], "Values"), (tuned["grid"], "Values"), (tuned["held_out"], "Settings")):
        _refer(node, name)
    return _of_files(_extending({**sweep, **dotted, **run}, "Sweep"), "Sweep")


def claim_schema() -> Schema:
    """The schema of claim files."""
    from evenkeel.trainer.lab.claims.claim import ClaimFile

    return _of_files(_definitions(ClaimFile), "ClaimFile")


SCHEMAS: dict[str, Callable[[], Schema]] = {"run": run_schema, "sweep": sweep_schema, "claim": claim_schema}
"""Kind of file → its schema. Each imports trl, which takes seconds."""


def _extending(definitions: dict[str, Schema], root: str) -> dict[str, Schema]:
    extends = {"type": "string", "minLength": 1, "description": _EXTENDS}
    definitions[root]["properties"] = {"extends": extends, **definitions[root]["properties"]}
    return definitions


def _of_files(definitions: dict[str, Schema], root: str) -> Schema:
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"{root} of Evenkeel"}
    return {**about, "$ref": f"#/$defs/{root}", "$defs": dict(sorted(definitions.items()))}


def _run_definitions() -> dict[str, Schema]:
    from evenkeel.trainer.run.config.schema import RunConfig

    definitions = _definitions(RunConfig)
    definitions["Run"] = run = definitions.pop("RunConfig")
    one = {"$ref": "#/$defs/environment"}
    by_task = {"type": "object", "minProperties": 1, "not": {"required": ["name"]}, "additionalProperties": one}
    run["properties"]["environment"]["anyOf"] = [one, by_task, {"type": "null"}]
    run["properties"]["tools"]["items"] = {"$ref": "#/$defs/tool"}
    return definitions | _parts()


def _definitions(model: type[BaseModel]) -> dict[str, Schema]:
    """pydantic's schema of a model and of those in it; parts and the libraries' sections are references."""
    whole = model.model_json_schema()
    definitions = {name: _plain(node) for name, node in {**whole.pop("$defs", {}), model.__name__: whole}.items()}
    # of a sweep that is the variables of its cells
    parts = _part_kinds().keys() - {"environment"}
    for node in [*definitions.values()]:
        for name, each in node.get("properties", {}).items():
            if name in parts and {"type": "null"} in each.get("anyOf", ()):
                each["anyOf"] = [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]
            elif name in parts:
                _refer(each, name)
            for member in members_of(each):
                if "properties" in member:
                    definitions[name] = {key: value for key, value in member.items() if key not in _OF_A_FIELD}
                    _refer(member, name)
    return definitions


def _plain(node: Schema) -> Schema:
    """A schema without titles and required keys, with the members of unions in a fixed order."""
    made: Schema = {}
    for key, value in node.items():
        if key == "properties":
            made[key] = {name: _plain(each) for name, each in value.items()}
        elif key == "anyOf":
            members = [_plain(each) for each in value]
            made[key] = sorted(members, key=lambda member: (member == {"type": "null"}, json.dumps(member)))
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            made[key] = _plain(value)
        elif key == "description":
            made[key] = "\n\n".join(" ".join(text.split()) for text in value.replace("``", "`").split("\n\n"))
        elif key not in ("title", "required") and not (key == "default" and isinstance(value, dict)):
            made[key] = value
    return made


def _refer(node: Schema, name: str) -> None:
    kept = {key: node[key] for key in _OF_A_FIELD if key in node}
    node.clear()
    node |= {"$ref": f"#/$defs/{name}", **kept}


def _part_kinds() -> dict[str, Kind]:
    """The key that names a part → where its parts are found."""
    from evenkeel.rewards.environments.building import ENVIRONMENT_KIND, TOOL_KIND
    from evenkeel.rewards.parts import GENERATORS, VERIFIER_KIND
    from evenkeel.trainer.algorithms.registry import KINDS
    from evenkeel.trainer.run.data.sources import generator_kind

    acting = {"environment": ENVIRONMENT_KIND, "tool": TOOL_KIND}
    return {**KINDS, "verifier": VERIFIER_KIND, "generator": generator_kind(GENERATORS), **acting}


def _parts() -> dict[str, Schema]:
    """A part by its name, or by its name with the options that it takes."""
    from evenkeel.trainer.algorithms.contract import ADVANTAGE
    from evenkeel.trainer.algorithms.mixtures import MIX

    own = {"type": "string", "pattern": _OWN_PART, "description": "Of your own: package.module:attribute."}
    parts = {}
    for key, kind in _part_kinds().items():
        options = {name: _options(key, target) for name, target in sorted(kind.built_in().items())}
        alone = [{"enum": list(options)}] if options else []
        if key == ADVANTAGE:
            options[MIX] = _object({"name": {}, "of": {"type": "object", "description": "Name → weight."}})
        chosen = [
            {"if": {"properties": {"name": {"const": name}}, "required": ["name"]}, "then": taken}
            for name, taken in options.items()
        ]
        named = {"name": {"anyOf": [{"enum": list(options)}, own]}}
        mapping = {"type": "object", "properties": named, "allOf": chosen}
        parts[key] = {"anyOf": [*alone, own, mapping]}
    return parts


def _options(kind: str, target: Callable[..., Any]) -> Schema:
    """A mapping of the options of a built-in part, which a function takes by keyword alone."""
    from evenkeel.rewards.verifier import Verifier

    documentation = (inspect.getdoc(target) or "").replace("``", "`")
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", documentation, flags=re.MULTILINE)
    meanings = {name: " ".join(text.split()) for name, text in entries}
    is_class = inspect.isclass(target)
    hints = typing.get_type_hints(target.__init__ if is_class and kind != "verifier" else target)
    properties: Schema = {"name": {"description": documentation.partition("\n")[0]}}
    for name, parameter in inspect.signature(target).parameters.items():
        if is_class or parameter.kind is parameter.KEYWORD_ONLY:
            hint = hints[name]
            option = {"$ref": "#/$defs/verifier"} if hint is Verifier else _plain(TypeAdapter(hint).json_schema())
            if parameter.default is not parameter.empty:
                option["default"] = parameter.default
            properties[name] = option | ({"description": meanings[name]} if name in meanings else {})
    if kind in ("environment", "tool"):
        properties |= {"time_limit_s": {"type": "number", "exclusiveMinimum": 0}, **properties}
    return _object(properties)


def _object(properties: Mapping[str, Any], **more: Any) -> Schema:
    return {"type": "object", "properties": {**properties}, **more, "additionalProperties": False}


def _settings(definitions: Mapping[str, Schema], name: str, above: str = "") -> Iterator[tuple[str, str, Schema]]:
    """Every setting below a definition: dotted key, reference to its schema, the schema."""
    for key, node in definitions[name]["properties"].items():
        yield above + key, f"#/$defs/{name}/properties/{key}", node
        for inner in [] if node.get("type") == "array" else sections_in(node, definitions):
            yield from _settings(definitions, inner, f"{above}{key}.")


def sections_in(node: Schema, definitions: Mapping[str, Schema]) -> list[str]:
    """The definitions of mappings with known keys that ``node``, or an item or value of it, may be."""
    members = [*members_of(node), node.get("items", {}), node.get("additionalProperties") or {}]
    named = [member["$ref"].rpartition("/")[2] for member in members if "$ref" in member]
    return [name for name in named if "properties" in definitions[name]]


def members_of(node: Schema) -> list[Schema]:
    """The alternatives of ``node``."""
    return node.get("anyOf") or [node]


def _has_places(node: Schema, definitions: Mapping[str, Schema]) -> bool:
    """Dotted keys may lead into what ``node`` describes, to keys that are not known here."""
    if "$ref" in node:
        return _has_places(definitions[node["$ref"].rpartition("/")[2]], definitions)
    if (members := members_of(node)) != [node]:
        return any(_has_places(member, definitions) for member in members)
    if node.get("additionalProperties") is False:
        return False
    return node.get("type") in ("object", "array") or not {"type", "enum", "const"} & {*node}
