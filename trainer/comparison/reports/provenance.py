"""Where the numbers come from: code, packages, machine, command, seeds, time."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.comparison.reports.run_files import RecordedRuns

MAIN_PACKAGES = ("evenkeel", "torch", "trl", "transformers", "accelerate", "deepspeed", "vllm", "peft", "datasets")


def provenance(runs: RecordedRuns) -> list[tuple[str, str]]:
    """Rows of what and its value; where runs differ in something, all values, so that a mixture shows."""
    manifests = [run.manifest for run in runs.all if run.manifest]
    versions = [manifest.get("packages") or {} for manifest in manifests]
    seconds = [float(run.summary["wall_seconds"]) for run in runs.all if run.summary.get("wall_seconds") is not None]
    rows = [
        ("code", _all(map(_revision, manifests))),
        ("packages", _all(", ".join(f"{name} {v[name]}" for name in MAIN_PACKAGES if name in v) for v in versions)),
        ("Python", _all(str(manifest.get("python", "")) for manifest in manifests)),
        ("machine", _all(map(_machine, manifests))),
        ("processes", _all(str(manifest.get("world_size", "")) for manifest in manifests)),
        ("data", _all(map(_data, manifests))),
        ("seeds", ", ".join(map(str, sorted({run.seed for run in runs.all})))),
        ("runs", str(len(runs.all))),
        ("wall time", _time(seconds)),
        ("command of the first run", shown_command(manifests[0].get("command") or []) if manifests else ""),
    ]
    return [(name, value) for name, value in rows if value]


def _all(values: Any) -> str:
    return " · ".join(dict.fromkeys(value for value in values if value))


def _revision(manifest: Mapping[str, Any]) -> str:
    revision = str(manifest.get("git_revision") or "not a git checkout")[:12]
    return revision + (" with uncommitted changes" if manifest.get("git_diff") else "")


def _machine(manifest: Mapping[str, Any]) -> str:
    machine = manifest.get("machine") or {}
    gpus = machine.get("gpus") or []
    parts = [machine.get("platform"), machine.get("cpu"), f"{len(gpus)} × {gpus[0]}" if gpus else "no GPU"]
    return ", ".join(str(part) for part in parts if part)


def _data(manifest: Mapping[str, Any]) -> str:
    prints = manifest.get("data_fingerprints") or {}
    return ", ".join(f"{part} {str(fingerprint)[:12]}" for part, fingerprint in prints.items())


def _time(seconds: list[float]) -> str:
    if not seconds:
        return ""
    total, each = sum(seconds), sum(seconds) / len(seconds)
    return _duration(total) + (f" in all, {_duration(each)} a run" if len(seconds) > 1 else "")


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.1f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def shown_command(command: Sequence[str]) -> str:
    """The command with paths from the checkout's folder on: where that lies is nobody's business but its owner's."""
    script = Path(command[0]) if command else Path()
    checkout = f"{script.parents[1]}/" if script.is_absolute() and len(script.parents) > 2 else ""
    return shlex.join(argument.replace(checkout, "") if checkout else argument for argument in command)
