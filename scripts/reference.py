"""What the documents hold of the code: shared options, what does not go together, commands, metrics.

    python scripts/reference.py options     # of `speed` and `vllm`: their values, defaults and meaning
    python scripts/reference.py rules       # what does not go together, of which severity, found when
    python scripts/reference.py commands    # every command's --help: docs/commands.md
    python scripts/reference.py metrics     # what a run logs: docs/metrics.md

Each prints Markdown; a test holds the documents against it.
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import argparse
import inspect
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import Field, fields
from importlib import import_module
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from evenkeel.trainer.command import COMMANDS
from evenkeel.trainer.run.config import rules as settings_rules
from evenkeel.trainer.run.config.schema import SpeedSection, VLLMSection
from evenkeel.trainer.step.logged import METRICS
from evenkeel.trainer.step.options import Engine, Speed

SECTIONS = (("speed", Speed, SpeedSection), ("vllm", Engine, VLLMSection))
"""Section of a run file, the options that it is made of, its model."""
COMMANDS_HEAD = """\
# Commands

```bash
evenkeel train quickstart                    # a shipped run file by its short name, or a file of yours
evenkeel check my_run.yaml                   # what it will do, all that is wrong with it
evenkeel completion bash > ~/.local/share/bash-completion/completions/evenkeel
```

All work from any folder. In a checkout `python scripts/train.py` and its neighbours are the same programs, and
`accelerate launch … -m evenkeel train RUN` works as `evenkeel launch … RUN` does. What `--help` says of each
(this page is printed by `python scripts/reference.py commands`):"""
SHOWN = 5
"""Settings that a row names at most."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    print(TABLES[parser.parse_args(argv).table]())
    return 0


def options() -> str:
    """Every key of the sections that the drop-in has too."""
    rows = []
    for section, kind, model in SECTIONS:
        hints, meanings = get_type_hints(kind), _meanings(kind)
        for field in fields(kind):
            declared = model.model_fields.get(field.name)
            default = written(field.default) + ("" if declared is None else _in_a_run(field, declared.default))
            key = field.name if declared is None else f"{section}.{field.name}"
            rows.append((f"`{key}`", values(hints[field.name]), default, meanings[field.name]))
    return table(("key", "values", "default", "meaning"), rows)


def rules() -> str:
    """Every rule, in the order in which it is asked: those of a file and of a run, then those of the step."""
    from evenkeel.trainer.run.schedule import ARGUMENT_RULES
    from evenkeel.trainer.step.compatibility import RULES

    named: list[tuple[str, Any]] = [(rule.about, rule) for rule in (*settings_rules.RULES, *ARGUMENT_RULES)]
    named += [(rule.what.rstrip("."), rule) for rule in RULES]
    settings: dict[tuple[str, str, str], dict[str, None]] = {}  # rules of one sentence are one row
    for what, rule in named:
        settings.setdefault((what, rule.severity, rule.moment), {}).update(dict.fromkeys(rule.settings))
    rows = [(what, _paths([*paths]), severity, moment) for (what, severity, moment), paths in settings.items()]
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


def metrics() -> str:
    """Every metric, a table under each heading."""
    head = ("key", "unit", "what it is", "logged")
    tables = {
        heading: table(head, [(f"`{each.name}`", each.unit, each.meaning, each.when) for each in found])
        for heading, found in METRICS.items()
    }
    return "\n\n".join(f"## {heading}\n\n{rows}" for heading, rows in tables.items())


def _paths(settings: Sequence[str]) -> str:
    return ", ".join([f"`{path}`" for path in settings[:SHOWN]] + ["…"] * (len(settings) > SHOWN))


def _in_a_run(field: Field[Any], default: Any) -> str:
    return "" if default == field.default else f"; in a run file {written(default)}"


def _meanings(kind: type) -> dict[str, str]:
    """Attribute → what the docstring's section *Attributes* says of it."""
    section = inspect.getdoc(kind).split("Attributes:\n")[1]  # type: ignore[union-attr]
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", section, flags=re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text).replace("``", "`").replace("|", "\\|") for name, text in entries}


def values(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return ", ".join(get_args(hint))
    return ", ".join("null" if kind is NoneType else kind.__name__ for kind in get_args(hint) or (hint,))


def written(value: Any) -> str:
    """As YAML has it."""
    return f"`{'null' if value is None else str(value).lower()}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


TABLES = {"options": options, "rules": rules, "commands": commands, "metrics": metrics}

if __name__ == "__main__":
    raise SystemExit(main())
