"""What the documents hold of the code: keys of run, sweep and claim files, rules and commands.

    python scripts/reference.py run         # the keys of run files: docs/run_file.md
    python scripts/reference.py sweep       # the keys of sweep files: docs/sweep_file.md
    python scripts/reference.py claim       # the keys of claim files: trainer/lab/README.md
    python scripts/reference.py rules       # what does not go together, and when that is found: configs/README.md
    python scripts/reference.py outcomes    # what variants are compared in: trainer/lab/README.md
    python scripts/reference.py commands    # every command's --help: docs/commands.md

Each prints Markdown; a test holds the documents against it.
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import argparse
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from evenkeel.trainer.command import COMMANDS
from evenkeel.trainer.command.schema import SCHEMAS, Schema, members_of, sections_in
from evenkeel.trainer.lab.reports.outcomes import OUTCOMES
from evenkeel.trainer.run.config import rules as settings_rules

COMMANDS_HEAD = """\
# Commands

```bash
evenkeel train quickstart                    # a shipped run file by its short name, or a file of yours
evenkeel check my_run.yaml                   # what it will do, all that is wrong with it
evenkeel completion bash > ~/.local/share/bash-completion/completions/evenkeel
```

All work from any folder, and `python -m evenkeel` is the same program.
`accelerate launch … -m evenkeel train RUN` works as `evenkeel launch … RUN` does. What `--help` says of each
(this page is printed by `python scripts/reference.py commands`):"""
OF_AN_UPDATE = "nothing: measured by `evenkeel gradients … --figures`"
UPDATES = {
    "rose_share": "Of the tokens with A > 0, those whose probability rose, by quarter of π_old.",
    "frozen_move": "How far frozen tokens move, over how far they move where all are trained.",
    "gradient_norm_share": "Gradient norm of one quarter's tokens alone, over that of all.",
}
"""Outcomes of a single update, which sweeps do not compare."""
SHOWN = 5
"""Settings that a row names at most."""
_LIBRARIES = {"trl": "trl.GRPOConfig", "lora": "peft.LoraConfig"}
"""Section → the class whose fields it has. Their tables come last, with the first sentence of the library's words."""
_BY_DOTTED_KEY = {
    "Settings": "{dotted key: value, …}",
    "Values": "{dotted key: [value, …], …}",
    "HeldOut": "{dotted key: value, …}",
}
"""Definition → how its keys are written: they are those of run files."""
_WORDS = {"integer": "whole number", "string": "text", "boolean": "true, false"}
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    print(TABLES[parser.parse_args(argv).table]())
    return 0


def keys(kind: str) -> str:
    """Every key of a kind of file: a table of those at the top, and one of each section."""
    schema = SCHEMAS[kind]()
    definitions = schema["$defs"]
    places: dict[str, list[str]] = {schema["$ref"].rpartition("/")[2]: [""]}
    own: list[str] = []
    foreign: list[str] = []
    names = [*places]
    for name in names:  # grows
        rows = []
        for key, node in definitions[name]["properties"].items():
            for inner in sections_in(node, definitions):
                if inner not in _BY_DOTTED_KEY:
                    names += [inner] * (inner not in places)
                    places.setdefault(inner, []).extend(f"{place}{key}." for place in places[name])
            text = node.get("description", "")
            meaning = re.split(r"(?<=[a-z)`]\.)\s", text)[0] if name in _LIBRARIES else text
            default = written(node["default"]) if "default" in node else ""
            meaning = " ".join(meaning.split()).replace("|", "\\|")
            rows.append((f"`{key}`", values(node, definitions), default, meaning))
        head = "### " + ", ".join(f"`{place[:-1]}`" for place in places[name] if place)
        about = f"`{_LIBRARIES[name]}`." if name in _LIBRARIES else definitions[name].get("description", "")
        keys_of_it = table(("key", "values", "default", "meaning"), rows)
        (foreign if name in _LIBRARIES else own).append(
            "\n\n".join(filter(None, (head.strip("# ") and head, about, keys_of_it)))
        )
    return "\n\n".join(own + foreign)


def values(node: Schema, definitions: Mapping[str, Schema]) -> str:
    """What may be written where ``node`` is the schema, in words."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        otherwise = "section" if "properties" in definitions[name] else "name, or {name: …, option: …}"
        return _BY_DOTTED_KEY.get(name, otherwise)
    if (members := members_of(node)) != [node]:
        return ", ".join(dict.fromkeys(values(member, definitions) for member in members))
    if words := node.get("enum", [node["const"]] if "const" in node else []):
        return ", ".join(written(word).strip("`") for word in words)
    kind: str = node.get("type", "anything")
    if kind == "array":
        return f"list of {values(node['items'], definitions)}" if node.get("items") else "list"
    if kind == "object":
        inside = node.get("additionalProperties")
        return f"{{name: {values(inside, definitions)}, …}}" if isinstance(inside, dict) else "mapping"
    return " ".join([_WORDS.get(kind, kind), *(f"{sign} {node[key]}" for key, sign in _BOUNDS.items() if key in node)])


def written(value: Any) -> str:
    """As YAML has it."""
    return f"`{json.dumps(value, ensure_ascii=False).strip(chr(34))}`"


def rules() -> str:
    """Every rule, in the order in which it is asked: those of a file and of a run, then those of the step."""
    from evenkeel.trainer.run.schedule import ARGUMENT_RULES
    from evenkeel.trainer.step.compatibility import RULES

    tables = (*settings_rules.RULES, *ARGUMENT_RULES, *RULES)
    rows = [(rule.about, _paths(rule.settings), rule.severity, rule.moment) for rule in tables]
    return table(("what does not go together", "settings", "severity", "asked of"), rows)


def commands() -> str:
    """The page of all commands, each with its ``--help`` as a terminal of 100 columns shows it."""
    os.environ["COLUMNS"] = "100"  # what argparse wraps by
    pages = [COMMANDS_HEAD]
    for name in COMMANDS:
        command = import_module(f"evenkeel.trainer.command.{name}").parser()
        groups = [action.choices for action in command._actions if isinstance(action, argparse._SubParsersAction)]
        for page in (command, *(below for group in groups for below in group.values())):
            pages.append(f"## {page.prog}\n\n```text\n{page.format_help().strip()}\n```")
    return "\n\n".join(pages)


def _paths(settings: Sequence[str]) -> str:
    return ", ".join([f"`{path}`" for path in settings[:SHOWN]] + ["…"] * (len(settings) > SHOWN))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown."""
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows))


def outcomes() -> str:
    """What variants can be compared in."""
    rows = []
    for each in OUTCOMES.values():
        good, pairs = "more" if each.sign > 0 else "less", "seed and row" if each.by_item else "seed"
        rows.append((f"`{each.name}`", each.definition, each.unit, good, pairs, each.needs))
    rows += [(f"`{name}`", definition, "share", "", "", OF_AN_UPDATE) for name, definition in UPDATES.items()]
    return table(("outcome", "what it is", "unit", "better is", "paired by", "what a run must log"), rows)


TABLES: dict[str, Callable[[], str]] = {
    **{kind: partial(keys, kind) for kind in SCHEMAS},
    "rules": rules,
    "outcomes": outcomes,
    "commands": commands,
}

if __name__ == "__main__":
    raise SystemExit(main())
