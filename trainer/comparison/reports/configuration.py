"""How the configurations of a sweep's variants differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.comparison.reports.run_files import RecordedRuns

CELL_SETTINGS = ("name", "output_dir", "seed")


@dataclass(frozen=True)
class Change:
    """One setting in which a variant differs from its baseline, both as text; ``None`` where one does not have it."""

    key: str
    before: str | None
    after: str | None


def configuration_changes(runs: RecordedRuns) -> dict[str, list[Change]]:
    """Variant → what it changes, from the resolved configurations of both; baselines are left out."""
    return {
        variant: _changes(_settings(runs, baseline), _settings(runs, variant))
        for variant in runs.by_variant
        if (baseline := runs.baseline.get(variant, variant)) != variant and baseline in runs.by_variant
    }


def flattened_parts(tree: Any, path: str = "") -> dict[str, Any]:
    """Dotted key → value of a nested mapping; a part by name alone and one with options compare by ``.name``."""
    if isinstance(tree, Mapping) and tree:
        return {
            key: value
            for name, child in tree.items()
            for key, value in flattened_parts(child, f"{path}.{name}").items()
        }
    if isinstance(tree, list) and any(isinstance(item, Mapping) for item in tree):
        return flattened_parts(dict(enumerate(tree)), path)
    return {path.removeprefix("."): tree}


def _settings(runs: RecordedRuns, variant: str) -> dict[str, Any]:
    config = next(iter(runs.by_variant[variant].values())).raw_config
    parts = {
        name: {"name": part} if isinstance(part, str) else part
        for name, part in (config.get("algorithm") or {}).items()
    }
    found = flattened_parts({**config, **({"algorithm": parts} if parts else {})})
    return {key: value for key, value in found.items() if key not in CELL_SETTINGS and key != "trl.seed"}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    changes = [Change(key, _text(before, key), _text(after, key)) for key in sorted({**before, **after})]
    return [change for change in changes if change.before != change.after]


def _text(settings: Mapping[str, Any], key: str) -> str | None:
    return str(settings[key]) if key in settings else None
