"""What configs/README.md holds of the code: options that run files and the drop-in share, and what goes together.

    python scripts/reference.py options     # of `speed` and `vllm`: their values, defaults and meaning
    python scripts/reference.py rules       # what does not go together, of which severity, found when

Each prints Markdown; a test holds the README against it.
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import argparse
import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import Field, fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from evenkeel.trainer.run.config import rules as settings_rules
from evenkeel.trainer.run.config.schema import SpeedSection, VLLMSection
from evenkeel.trainer.step.options import Engine, Speed

SECTIONS = (("speed", Speed, SpeedSection), ("vllm", Engine, VLLMSection))
"""Section of a run file, the options that it is made of, its model."""
SHOWN = 5
"""Settings that a row names at most."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("options", "rules"))
    print(options() if parser.parse_args(argv).table == "options" else rules())
    return 0


def options() -> str:
    """Every key of the sections that the drop-in has too."""
    rows = []
    for section, kind, model in SECTIONS:
        hints, meanings = get_type_hints(kind), _meanings(kind)
        for field in fields(kind):
            declared = model.model_fields.get(field.name)
            default = _written(field.default) + ("" if declared is None else _in_a_run(field, declared.default))
            key = field.name if declared is None else f"{section}.{field.name}"
            rows.append((f"`{key}`", _values(hints[field.name]), default, meanings[field.name]))
    return _table(("key", "values", "default", "meaning"), rows)


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
    return _table(("what does not go together", "settings", "severity", "asked of"), rows)


def _paths(settings: Sequence[str]) -> str:
    return ", ".join([f"`{path}`" for path in settings[:SHOWN]] + ["…"] * (len(settings) > SHOWN))


def _in_a_run(field: Field[Any], default: Any) -> str:
    return "" if default == field.default else f"; in a run file {_written(default)}"


def _meanings(kind: type) -> dict[str, str]:
    """Attribute → what the docstring's section *Attributes* says of it."""
    section = inspect.getdoc(kind).split("Attributes:\n")[1]  # type: ignore[union-attr]
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", section, flags=re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text).replace("``", "`").replace("|", "\\|") for name, text in entries}


def _values(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return ", ".join(get_args(hint))
    return ", ".join("null" if kind is NoneType else kind.__name__ for kind in get_args(hint) or (hint,))


def _written(value: Any) -> str:
    """As YAML has it."""
    return f"`{'null' if value is None else str(value).lower()}`"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    raise SystemExit(main())
