"""What a run, sweep or claim file may hold, as JSON Schema (draft 2020-12): editors complete and check by it.

    evenkeel schema run > run.schema.json
    evenkeel schema sweep > sweep.schema.json
    evenkeel schema claim > claim.schema.json

Shipped files name the shipped schema in their first line, `# yaml-language-server: $schema=…`, which `evenkeel configs
copy` keeps right. One that you print also knows the parts that installed packages offer and the arguments of your TRL.
What one key asks of another is not in it: `evenkeel check` says that. The same keys as tables: docs/run_file.md.
"""

import argparse
import inspect
import json
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter

from evenkeel.errors import suggest
from evenkeel.rewards.registry import Kind
from evenkeel.trainer.command import command_line

Schema = dict[str, Any]

_OWN_PART = r"^[^:/\\]+:[^:]+$"
_PARTIAL = "_partial"
"""Ends the name of a definition as a file that extends another may write it: what it leaves out is in its base."""
_EXTENDS = "The one file, beside this one, whose keys this one takes over: its own win, mappings merge, lists replace."
_OF_A_FIELD = ("description", "default")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 printed, 2 refused."""
    print(json.dumps(SCHEMAS[parser().parse_args(argv).kind](), indent=1, ensure_ascii=False))
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = command_line(__name__, __doc__)
    whole.add_argument("kind", nargs="?", default="run", type=_kind, choices=(*SCHEMAS,), help="of file; default: run")
    return whole


def _kind(text: str) -> str:
    if text not in SCHEMAS:
        nearest = suggest(text, SCHEMAS, f"Kinds: {', '.join(SCHEMAS)}.")
        raise argparse.ArgumentTypeError(f"{text!r} is no kind of file that has a schema. {nearest}")
    return text


def run_schema() -> Schema:
    """Of run files, and of those that are read only to evaluate."""
    return _of_files(_with_partial(_run_definitions()), "Run")


def sweep_schema() -> Schema:
    """Of sweep files; settings of a run are dotted keys in them."""
    from evenkeel.trainer.lab.sweeps.consistency import RESERVED_KEYS
    from evenkeel.trainer.lab.sweeps.schema import SlurmSweep, Sweep

    run = _with_partial(_run_definitions())
    settings, free = {}, []
    for path, pointer, node in _settings(run, f"Run{_PARTIAL}"):
        if path not in RESERVED_KEYS:
            settings[path] = {"$ref": pointer}
        if _has_places(node, run):
            free.append(re.escape(path))
    beneath, values = rf"^({'|'.join(free)})\.", {"type": "array", "minItems": 1}
    grid = {path: {**values, "items": node} for path, node in settings.items()}
    dotted = {
        "Settings": _object(settings, patternProperties={beneath: True}),
        "Values": _object(grid, patternProperties={beneath: values}),
        "HeldOut": {"propertyNames": {"pattern": r"^data\.test\."}, "$ref": "#/$defs/Settings"},
    }

    sweep = {**_definitions(Sweep), "SlurmExecution": _definitions(SlurmSweep)["SlurmExecution"]}
    keys, tuned = sweep["Sweep"]["properties"], sweep["Tuning"]["properties"]
    executors = [{"$ref": f"#/$defs/{name}"} for name in ("LocalExecution", "SlurmExecution")]
    keys["executor"] = {"anyOf": executors, "description": keys["executor"]["description"]}
    keys["variants"]["additionalProperties"] = {"anyOf": [{"$ref": "#/$defs/Settings"}, {"type": "null"}]}
    keys["variants"]["propertyNames"] = {"pattern": r"^[^\s/\\,=]+$"}
    for node, name in ((keys["grid"], "Values"), (tuned["grid"], "Values"), (tuned["held_out"], "HeldOut")):
        _refer(node, name)
    sweep["Sweep"]["required"] = ["variants", "baseline"]
    own, of_parents = {"required": ["config", "seeds"]}, {"properties": {"config": False, "seeds": False}}
    sweep["Sweep"] |= {"if": {"required": ["from"]}, "then": of_parents, "else": own}
    return _of_files({**_with_partial(sweep), **dotted, **run}, "Sweep")


def claim_schema() -> Schema:
    """Of claim files, which name a sweep's file or hold what is in one."""
    from evenkeel.trainer.lab.claims.claim import Claim

    held = sweep_schema()
    claim = _definitions(Claim)["Claim"]
    claim["required"].remove("name")
    sweep = claim["properties"]["sweep"]
    text = next(member for member in sweep["anyOf"] if member["type"] == "string")
    sweep["anyOf"] = [text, {key: held[key] for key in ("if", "then", "else")}]
    definitions = dict(sorted({**held["$defs"], "Claim": claim}.items()))
    return {"$schema": held["$schema"], "title": "Claim of Evenkeel", "$ref": "#/$defs/Claim", "$defs": definitions}


SCHEMAS: dict[str, Callable[[], Schema]] = {"run": run_schema, "sweep": sweep_schema, "claim": claim_schema}
"""Kind of file → its schema. Each imports trl, which takes seconds."""


def _of_files(definitions: dict[str, Schema], root: str) -> Schema:
    """The schema of files, of which one that extends another need not be complete."""
    for name in (root, root + _PARTIAL):
        extends = {"type": "string", "minLength": 1, "description": _EXTENDS}
        definitions[name]["properties"] = {"extends": extends, **definitions[name]["properties"]}
    ends: dict[str, Schema] = {
        "if": {"required": ["extends"]},
        "then": {"$ref": f"#/$defs/{root}{_PARTIAL}"},
        "else": {"$ref": f"#/$defs/{root}"},
    }
    used: dict[str, Schema] = {}
    names = [*_named_in(ends)]
    for name in names:  # grows
        if name not in used:
            used[name] = definitions[name]
            names += _named_in(definitions[name])
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"{root} of Evenkeel"}
    return {**about, **ends, "$defs": dict(sorted(used.items()))}


def _named_in(node: Any) -> Iterator[str]:
    """The definitions that ``node`` refers to."""
    return (found[1] for found in re.finditer(r'"\$ref": "#/\$defs/(\w+)', json.dumps(node)))


def _run_definitions() -> dict[str, Schema]:
    from evenkeel.trainer.run.config.schema import RunConfig

    definitions = _definitions(RunConfig)
    definitions["Run"] = run = definitions.pop("RunConfig")
    # A file without rows to train on is given to `evenkeel evaluate`, which names the model.
    trains = {"properties": {"data": {"required": ["train"]}}, "required": ["data"]}
    named = {"model": {"required": definitions["ModelSection"].pop("required")}}
    run |= {"required": ["data", "rewards"], "if": trains, "then": {"required": ["model"], "properties": named}}
    other = {"not": {"enum": [*definitions["Source"]["properties"]]}}
    several = {"type": "object", "minProperties": 1, "propertyNames": other}
    for part in ("train", "test"):
        place = definitions["DataSection"]["properties"][part]
        source, sources, nothing = place.pop("anyOf")
        place |= {"if": several, "then": sources, "else": {"anyOf": [source, nothing]}}
    one = {"$ref": "#/$defs/environment"}
    by_task = {"type": "object", "minProperties": 1, "not": {"required": ["name"]}, "additionalProperties": one}
    run["properties"]["environment"]["anyOf"] = [one, by_task, {"type": "null"}]
    run["properties"]["tools"]["items"] = {"$ref": "#/$defs/tool"}
    return definitions | _parts()


def _definitions(model: type[BaseModel]) -> dict[str, Schema]:
    """What pydantic says of a model, and of those in it; parts and the libraries' sections are references."""
    whole = model.model_json_schema()
    definitions: dict[str, Schema] = {**whole.pop("$defs", {}), model.__name__: whole}
    apart: dict[str, Schema] = {}
    parts = _part_kinds().keys() - {"environment"}  # of a sweep that is the variables of its cells

    def plain(node: Schema) -> Schema:
        made = _rebuilt(node, plain)
        made.pop("title", None)
        if "description" in made:
            paragraphs = made["description"].replace("``", "`").split("\n\n")
            made["description"] = "\n\n".join(" ".join(text.split()) for text in paragraphs)
        if isinstance(made.get("default"), dict):
            del made["default"]
        for name, each in made.get("properties", {}).items():
            members = each.get("anyOf", ())
            if name in parts:
                if {"type": "null"} in members:
                    each["anyOf"] = [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]
                else:
                    _refer(each, name)
            for member in (each, *members):
                if "properties" in member:
                    apart[name] = {key: value for key, value in member.items() if key not in _OF_A_FIELD}
                    _refer(member, name)
        return made

    return {name: plain(_in_order(node)) for name, node in definitions.items()} | apart


def _in_order(node: Schema) -> Schema:
    """With the members of unions in one order; typing has that in which any module first wrote such a union."""
    made = _rebuilt(node, _in_order)
    if "anyOf" in made:
        made["anyOf"].sort(key=lambda member: (member == {"type": "null"}, json.dumps(member)))
    return made


def _refer(node: Schema, name: str) -> None:
    kept = {key: node[key] for key in _OF_A_FIELD if key in node}
    node.clear()
    node |= {"$ref": f"#/$defs/{name}", **kept}


def _rebuilt(node: Any, change: Callable[[Any], Any], without: Sequence[str] = ()) -> Schema:
    """A copy of a schema with ``change`` applied to the schemas right inside it, but for those at keys ``without``."""
    made = {}
    for key, value in node.items():
        if key in without:
            made[key] = value
        elif key in ("properties", "patternProperties"):
            made[key] = {name: change(each) for name, each in value.items()}
        elif isinstance(value, list) and key in ("anyOf", "allOf"):
            made[key] = [change(each) for each in value]
        else:
            inside = isinstance(value, dict) and key in ("if", "then", "else", "items", "additionalProperties")
            made[key] = change(value) if inside else value
    return made


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
        mapping: Schema = {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"anyOf": [{"enum": kind.names()}, own]}},
            "allOf": [
                {"if": {"properties": {"name": {"const": name}}, "required": ["name"]}, "then": taken}
                for name, taken in options.items()
            ],
        }
        if key == ADVANTAGE:
            mapping["properties"]["name"]["anyOf"].append({"const": MIX})
            mapping["allOf"].append(
                {"if": {"properties": {"name": {"const": MIX}}, "required": ["name"]}, "then": _mixture()}
            )
        alone = [name for name in kind.names() if "required" not in options.get(name, ())]
        parts[key] = {"anyOf": [*([{"enum": alone}] if alone else []), own, mapping]}
    return parts


def _mixture() -> Schema:
    """What is beside the name of a mixture."""
    weight = {"type": "number", "exclusiveMinimum": 0}
    with_options = {"type": "object", "properties": {"weight": weight}, "required": ["weight"]}
    parts = {"type": "object", "minProperties": 1, "additionalProperties": {"anyOf": [weight, with_options]}}
    of = parts | {"description": "Name → weight, or its weight and options."}
    return _object({"name": {"description": "Estimators added up."}, "of": of}) | {"required": ["of"]}


def _options(kind: str, target: Callable[..., Any]) -> Schema:
    """A mapping of the options of a built-in part, which a function takes by keyword alone."""
    from evenkeel.rewards.verifier import Verifier

    documentation = inspect.getdoc(target) or ""
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", documentation, flags=re.MULTILINE)
    meanings = {name: " ".join(text.replace("``", "`").split()) for name, text in entries}
    is_class = inspect.isclass(target)
    hints = typing.get_type_hints(target.__init__ if is_class and kind != "verifier" else target)
    properties: Schema = {"name": {"description": documentation.partition("\n")[0].replace("``", "`")}}
    needed = []
    for name, parameter in inspect.signature(target).parameters.items():
        if is_class or parameter.kind is parameter.KEYWORD_ONLY:
            hint = hints[name]
            option = {"$ref": "#/$defs/verifier"} if hint is Verifier else _in_order(TypeAdapter(hint).json_schema())
            if parameter.default is parameter.empty:
                needed.append(name)
            else:
                option["default"] = parameter.default
            properties[name] = option | ({"description": meanings[name]} if name in meanings else {})
    if kind in ("environment", "tool"):
        limit = {"type": "number", "exclusiveMinimum": 0, "description": "Seconds of each call."}
        properties.setdefault("time_limit_s", limit)
        limit = {"type": "integer", "minimum": 1, "description": "Of the process of a tool, or of all rows' objects."}
        properties.setdefault("memory_mb", limit)
    if kind == "environment":
        properties["calls_at_once"] = {"type": "integer", "minimum": 1, "description": "Calls of different rows."}
        new = {"type": "boolean", "description": "A new object for each row, instead of one that is reset."}
        properties["new_for_each_row"] = new
    return _object(properties) | ({"required": needed} if needed else {})


def _object(properties: Mapping[str, Any], **more: Any) -> Schema:
    return {"type": "object", "properties": {**properties}, **more, "additionalProperties": False}


def _with_partial(definitions: Mapping[str, Schema]) -> dict[str, Schema]:
    """And each of them, where it differs, as a file that extends another may write it: nothing is required there.

    What stands in a list is complete, for lists are not merged.
    """
    differing: set[str] = set()

    def partial(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        made = _rebuilt(node, partial, without=("items", "if"))
        made = {key: value for key, value in made.items() if key not in ("required", "minProperties")}
        if str(node.get("$ref", "")).rpartition("/")[2] in differing:
            made["$ref"] += _PARTIAL
        if made.get("anyOf") and not any(made["anyOf"]):
            del made["anyOf"]
        return made

    while found := {name for name, node in definitions.items() if partial(node) != node} - differing:
        differing |= found
    return {**definitions, **{f"{name}{_PARTIAL}": partial(definitions[name]) for name in differing}}


def _settings(definitions: Mapping[str, Schema], name: str, above: str = "") -> Iterator[tuple[str, str, Schema]]:
    """Every setting below a definition: dotted key, reference to its schema, the schema."""
    for key, node in definitions[name]["properties"].items():
        yield above + key, f"#/$defs/{name}/properties/{key}", node
        for inner in [] if node.get("type") == "array" else sections_in(node, definitions):
            yield from _settings(definitions, inner, f"{above}{key}.")


def sections_in(node: Schema, definitions: Mapping[str, Schema]) -> list[str]:
    """The definitions of mappings with known keys that ``node``, or an item of it, may be."""
    members = [*members_of(node), node.get("items", {})]
    named = [member["$ref"].rpartition("/")[2] for member in members if "$ref" in member]
    return [name for name in named if "properties" in definitions[name]]


def members_of(node: Schema) -> list[Schema]:
    """What ``node`` may be, each for itself."""
    return [*members_of(node["else"]), node["then"]] if "else" in node else node.get("anyOf") or [node]


def _has_places(node: Schema, definitions: Mapping[str, Schema]) -> bool:
    """Whether dotted keys may lead further into what ``node`` describes, to places that are not known here."""
    if "$ref" in node:
        return _has_places(definitions[node["$ref"].rpartition("/")[2]], definitions)
    if (members := members_of(node)) != [node]:
        return any(_has_places(member, definitions) for member in members)
    if node.get("additionalProperties") is False:
        return False
    return node.get("type") in ("object", "array") or not {"type", "enum", "const"} & {*node}
