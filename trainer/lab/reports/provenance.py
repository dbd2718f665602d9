"""Provenance (code, packages, machine, command, seeds, time), and the settings that variants change."""

import shlex
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns
from evenkeel.trainer.lab.reports.tables import NOTHING, Heading, Table, TableCell, table_of
from evenkeel.trainer.run.config.layers import flattened

MAIN_PACKAGES = ["evenkeel", "torch", "trl", "transformers", "accelerate", "deepspeed", "vllm", "peft", "datasets"]


def provenance_table(runs: RecordedRuns) -> Table:
    """One row for each fact, with all values where runs differ."""
    manifests = [run.manifest for run in runs.all if run.manifest]
    versions = [manifest.get("packages") or {} for manifest in manifests]
    seconds = [float(run.summary["wall_seconds"]) for run in runs.all if run.summary.get("wall_seconds") is not None]
    rows = [
        ("code", _all(map(_revision, manifests))),
        ("packages", _all(", ".join(f"{name} {v[name]}" for name in MAIN_PACKAGES if name in v) for v in versions)),
        ("Python", _all(str(manifest.get("python", "")) for manifest in manifests)),
        ("machine", _all(map(_machine, manifests)) if runs.baseline else ""),
        ("SHA-256 of the rows", _all(map(_data, manifests))),
        ("seed", ", ".join(map(str, sorted({run.seed for run in runs.all})))),
        ("time (h:min:s)", str(timedelta(seconds=round(sum(seconds)))) if seconds else ""),
        (
            f"command{' of the first run' * bool(runs.baseline)}",
            shlex.join(manifests[0].get("command") or []) if manifests else "",
        ),
    ]
    headings = ("what", Heading("value", is_prose=True))
    return table_of("Provenance", headings, [row for row in rows if row[1]])


def _all(values: Any) -> str:
    return " · ".join(dict.fromkeys(value for value in values if value))


def _revision(manifest: Mapping[str, Any]) -> str:
    revision = str(manifest.get("git_revision") or "not a git checkout")[:12]
    return revision + (" with uncommitted changes" if manifest.get("git_diff") else "")


def _machine(manifest: Mapping[str, Any]) -> str:
    machine = manifest.get("machine") or {}
    gpus, processes = machine.get("gpus") or [], manifest.get("world_size", 1)
    devices = f"{len(gpus)} × {gpus[0]}" if gpus else "no GPU"
    return f"{machine.get('cpu', 'CPU')}, {devices}, {processes} process{'es' * (processes != 1)}"


def _data(manifest: Mapping[str, Any]) -> str:
    prints = manifest.get("data_fingerprints") or {}
    return ", ".join(f"{part} {str(fingerprint)[:12]}" for part, fingerprint in prints.items())


def trained_table(run: RecordedRun) -> Table:
    """One row for each section of the run file that says what was trained, without what is off; then the machine."""
    config, data = run.raw_config, run.raw_config.get("data") or {}
    sections = {
        "model": config.get("model"),
        "trained on": data.get("train"),
        "held out": data.get("test"),
        "scored by, × weight": {str(each["verifier"]): each.get("weight", 1) for each in config.get("rewards") or []},
        "algorithm": config.get("algorithm"),
        "TRL's arguments": config.get("trl"),
    }
    rows = [
        (what, ", ".join(f"{key} {value}" for key, value in flattened(found).items() if str(value) not in OFF))
        for what, found in sections.items()
        if found
    ]
    rows += [("hardware", _machine(run.manifest))] if run.manifest else []
    caption = "Settings by their names in the run file; the command strategies explains those of the algorithm."
    return table_of("What was trained", ("what", Heading("value", is_prose=True)), rows, caption)


OFF = ("None", "False")
CELL_SETTINGS = ("name", "output_dir", "seed")


def changes_table(runs: RecordedRuns) -> Table | None:
    """One row for each setting in which a variant differs from its baseline; ``None`` without any."""
    rows = []
    for variant in runs.by_variant:
        if (baseline := runs.baseline_of(variant)) in runs.by_variant:
            before, after = _settings(runs, baseline), _settings(runs, variant)
            for key in sorted({**before, **after}):
                old, new = (str(found[key]) if key in found else NOTHING for found in (before, after))
                if old != new:
                    rows.append((variant, TableCell(key, is_code=True), old, new))
    titles = ("variant", "setting", "baseline", "variant's")
    return table_of("What the variants change", titles, rows) if rows else None


def _settings(runs: RecordedRuns, variant: str) -> dict[str, Any]:
    config = next(iter(runs.by_variant[variant].values())).raw_config
    parts = {
        name: {"name": part} if isinstance(part, str) else part
        for name, part in (config.get("algorithm") or {}).items()
    }
    found = flattened({**config, **({"algorithm": parts} if parts else {})})
    return {key: value for key, value in found.items() if key not in CELL_SETTINGS}
