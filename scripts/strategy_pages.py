"""A page for each built-in strategy, made with the site: its docstring, its options, what was measured of it."""

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from evenkeel.trainer.algorithms.contract import COEFFICIENT
from evenkeel.trainer.algorithms.registry import KINDS, built_in, find_strategy
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.run.config.yaml_document import read_file
from scripts.reference import table, values, written

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "configs"

Key = tuple[str, str]
"""Kind and name of a strategy."""

NEEDED: dict[str, dict[str, Any]] = {"curriculum": {"column": "num_people", "levels": [3, 4, 5, 6, 7], "up_at": 0.8}}
"""Examples of options that have no default."""


def strategy_pages() -> dict[str, str]:
    """Path of a page → its Markdown. Links are as from two folders below the repository."""
    commands, results, files = _commands(), _results(), _run_files()
    pages = {}
    for kind in KINDS:
        for name, function in sorted(built_in(kind).items()):
            key = (kind, name)
            parts = [f"# `{name}`", _asked_for(kind, name, function), _as_markdown(inspect.getdoc(function) or "")]
            parts += ["## In a run file", *_in_a_run_file(kind, name, function), *commands[key]]
            parts += ["## Measured", *(results[key] or ["No sweep of this repository has measured it yet."])]
            parts += ["## Run files", *files[key]] if files[key] else []
            pages[f"strategies/{kind}/{name}.md"] = "\n\n".join(parts) + "\n"
    return pages


def _asked_for(kind: str, name: str, function: Callable[..., Any]) -> str:
    """Its kind and file, the signals that it names, and what it declares of itself."""
    strategy = find_strategy(kind, {"name": name, **NEEDED.get(name, {})})
    source = Path(inspect.getsourcefile(function) or "").resolve().relative_to(ROOT).as_posix()
    signals = ", ".join(f"`{signal}`" for signal in sorted(strategy.signals | {*strategy.columns}))
    declared = {field.name: getattr(strategy.traits, field.name) for field in fields(strategy.traits)}
    traits = ", ".join(
        f"`{trait}`" + ("" if value is True else f": {value}") for trait, value in declared.items() if value
    )
    rows = [
        ("kind", f"[`{kind}`](../../trainer/algorithms/README.md#notation)"),
        ("file", f"[{source}](../../{source})"),
    ]
    rows += [("[signals](../../trainer/algorithms/README.md#signals)", signals)] if signals else []
    rows += [("[traits](../../trainer/algorithms/README.md#traits)", traits)] if traits else []
    return table(("", ""), rows)


def _as_markdown(docstring: str) -> str:
    """The docstring's paragraphs, each section of it under its name, arguments and errors as lists."""
    text = docstring.replace("``", "`")
    text = re.sub(
        r"^(Args|Raises):\n((?: {4}.*\n?)+)",
        lambda found: f"{found[1]}:\n\n" + re.sub(r"^ {4}(\w+): ", r"- `\1`: ", found[2], flags=re.MULTILINE) + "\n",
        text,
        flags=re.MULTILINE,
    )
    return re.sub(r"^(Source|Evidence|Limits|Args|Raises):", r"\n**\1:**", text, flags=re.MULTILINE)


def _in_a_run_file(kind: str, name: str, function: Callable[..., Any]) -> list[str]:
    """Its section with every option at its default, and what the options may be."""
    options = [
        option for option in inspect.signature(function).parameters.values() if option.kind is option.KEYWORD_ONLY
    ]
    needed = NEEDED.get(name, {})
    defaults = {option.name: "" if option.name in needed else written(option.default) for option in options}
    shown = {"name": name, **{key: str(needed.get(key, value)) for key, value in defaults.items()}}
    mapping = ", ".join(f"{key}: {value.strip('`')}" for key, value in shown.items())
    lines = ["algorithm:", f"  {kind}: {f'{{{mapping}}}' if options else name}"]
    lines += ["  revision: {references: 3}"] if find_strategy(kind, {"name": name, **needed}).columns else []
    lines += ["trl: {loss_type: cispo}"] if kind == COEFFICIENT else []
    parts = ["\n".join(["```yaml", *lines, "```"])]
    if options:
        rows = [
            (f"`{option.name}`", values(TypeAdapter(option.annotation).json_schema(), {}), defaults[option.name])
            for option in options
        ]
        parts.append(table(("option", "values", "default"), rows))
    return parts


def _commands() -> Mapping[Key, list[str]]:
    """The rows of the table of variants in configs/README.md, as commands."""
    found = defaultdict(list)
    for line in (CONFIGS / "README.md").read_text().splitlines():
        variant, settings, *_, note = [*re.split(r"(?<!\\)\|", line)[1:-1], "", "", ""][:4]
        for kind, name in re.findall(r"algorithm\.(\w+)=(?:\{name: )?(\w+)", settings):
            command = f"evenkeel train countdown/baseline name={variant.strip()} {settings.strip().strip('`')}"
            found[kind, name].append(f"```bash\n{command}{f'   # {note.strip()}' * bool(note.strip())}\n```")
    return found


def _results() -> Mapping[Key, list[str]]:
    """What the sweeps that have run say of each strategy."""
    rows: defaultdict[Key, list[tuple[str, ...]]] = defaultdict(list)
    for report in sorted((CONFIGS / "sweeps").glob("*_report.md")):
        first, *others = re.split(r"^## Report on `(.+)`.*$", report.read_text(), flags=re.MULTILINE)
        texts = dict(zip(others[::2], others[1::2], strict=True)) or {
            f"{report.stem.removesuffix('_report')}.yaml": first
        }
        for file, text in texts.items():
            sweep, _ = load_sweep(CONFIGS / "sweeps" / file)
            for variant, changes in sweep.variants.items():
                named = [key for kind in KINDS if (key := _key(kind, changes.get(f"algorithm.{kind}")))]
                if not named and variant == sweep.baseline:
                    named = [("advantage", "grpo")]
                verdicts: dict[str, list[str]] = {}  # of each point of a grid; they stand in the first table
                for point, *cells in re.findall(rf"^\| ({variant}(?:,.+?)?) \| (.+?) \| (.*?) \| (.+?) \|", text, re.M):
                    verdicts.setdefault(point, cells)
                link = f"[{file}](../../configs/sweeps/{report.name})"
                for key in named:
                    rows[key] += [(link, f"`{point}`", *cells) for point, cells in verdicts.items()]
    head = ("sweep", "variant", "held-out accuracy", "difference from its baseline", "verdict")
    return defaultdict(list, {key: [table(head, found)] for key, found in rows.items()})


def _run_files() -> Mapping[Key, list[str]]:
    """The run files that name a strategy, with what their headers expect."""
    rows = defaultdict(list)
    for path in sorted(CONFIGS.glob("*/**/*.yaml")):
        algorithm = read_file(path).plain().get("algorithm")
        for kind in KINDS if isinstance(algorithm, dict) else ():
            if key := _key(kind, algorithm.get(kind)):
                header = re.sub(r"^# ?", "", path.read_text().partition("\n\n")[0], flags=re.MULTILINE)
                expected = re.findall(r"Expected:? ?(.*?)(?:\n\n|\Z)", header, flags=re.DOTALL)
                file = path.relative_to(CONFIGS).as_posix()
                rows[key].append((f"[{file}](../../configs/{file})", " ".join("".join(expected).split()) or "–"))
    return defaultdict(list, {key: [table(("run file", "expected"), found)] for key, found in rows.items()})


def _key(kind: str, specification: Any) -> Key | None:
    """The strategy of this project that a specification names."""
    name = specification.get("name") if isinstance(specification, dict) else specification
    return (kind, name) if name in built_in(kind) else None
