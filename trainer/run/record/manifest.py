"""What a run was made of: command, code, versions, data, machine; and in what another run of it would differ."""

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from evenkeel.rewards.registry import Refusal
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.layers import flattened
from evenkeel.trainer.run.record.files import CONFIG, MANIFEST, DamagedFileError, write_json
from evenkeel.trainer.run.record.run_record import RunRecord
from evenkeel.trainer.run.record.started_from import content_hash, model_files, own_code, what_changed

ROOT = Path(__file__).parents[3]
ENVIRONMENT = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG", "NCCL_ALGO")
"""Variables of the environment that change the order of sums, and with it the last digits of every number."""
LAUNCHER = ("ACCELERATE_", "FSDP_", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
"""Beginnings of the variables through which a launcher says what it started."""
DECIDES = (
    "git_revision",
    "git_diff",
    "python",
    "packages",
    "world_size",
    "data_fingerprints",
    "model_files",
    "own_code",
    "branch",
    "environment",
    "machine",
)
"""What decides whether the same configuration gives the same numbers again."""


TRAINS_WITH = (
    *("torch", "trl", "transformers", "accelerate", "peft", "deepspeed", "bitsandbytes", "vllm", "tokenizers"),
    *("trl-evenkeel", "git_revision", "python", "sympy", "latex2sympy2_extended", "math-verify"),
)
"""Of these another version may compute other numbers, or give other verdicts, in a resumed run."""


class RerunError(Refusal):
    """A run that cannot be repeated; the message says why, and what to do instead."""


def manifest(config: RunConfig, world_size: int, fingerprints: Mapping[str, str]) -> dict[str, Any]:
    """The record of a run that starts now, as plain data."""
    return {
        "command": sys.argv,
        "git_revision": _git("rev-parse", "HEAD"),
        "git_diff": _git("diff", "HEAD"),
        "git_untracked": _git("ls-files", "--others", "--exclude-standard"),
        "python": platform.python_version(),
        "packages": dict(sorted({found.name.lower(): found.version for found in distributions()}.items())),
        "seed": config.run_seed,
        "data_fingerprints": dict(fingerprints),
        "world_size": world_size,
        "checkpoint_manifests": True,
        "model_fingerprint": model_fingerprint(config.model.name_or_path, config.model.revision),
        "model_files": model_files(config.model.name_or_path, config.model.revision),
        "own_code": own_code(config),
        "branch": None if config.branch_of is None else content_hash(Path(config.branch_of) / MANIFEST),
        "launcher": {name: value for name, value in sorted(os.environ.items()) if name.startswith(LAUNCHER)},
        "environment": {name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        "machine": _machine(),
    }


def write_manifest(run: Path, config: RunConfig, world_size: int, fingerprints: Mapping[str, str]) -> None:
    """``config.yaml``, which starts the same run again, and ``manifest.json``."""
    run.mkdir(parents=True, exist_ok=True)
    config.save_resolved(run / CONFIG)
    write_json(run / MANIFEST, manifest(config, world_size, fingerprints))


def read_manifest(run: Path) -> dict[str, Any]:
    """The record of ``run``.

    Raises:
        RerunError: there is none, or it is damaged.
    """
    path = run / MANIFEST
    if not path.is_file():
        raise RerunError(f"{run} has no {MANIFEST}, so it is not known what was run. Name a run's directory.")
    try:
        record = RunRecord(run, instead="What was run is not known; start a new run.").manifest
    except DamagedFileError as error:
        raise RerunError(str(error)) from error
    if missing := [key for key in ("world_size", "data_fingerprints") if key not in record]:
        raise RerunError(f"{path} does not say {' and '.join(missing)}, so it cannot be used here. Start a new run.")
    return record


def changed_versions(record: Mapping[str, Any]) -> list[str]:
    """``torch 2.12.0 → 2.13.0`` for each of `TRAINS_WITH` of which there is another version than recorded."""
    recorded = {**(record.get("packages") or {}), **{name: record.get(name) for name in ("python", "git_revision")}}
    now = {found.name.lower(): found.version for found in distributions()} | {"python": platform.python_version()}
    now |= {"git_revision": _git("rev-parse", "HEAD") or ""}
    pairs = [(name, recorded.get(name), now.get(name)) for name in TRAINS_WITH]
    return [f"{name} {before} → {after or 'absent'}" for name, before, after in pairs if before not in (None, after)]


def data_fingerprint(rows: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 of the rows in their order, of every column: equal exactly when the data are equal."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, ensure_ascii=True, default=repr).encode() + b"\n")
    return digest.hexdigest()


def model_fingerprint(name_or_path: str, revision: str | None) -> str | None:
    """Which weights a run starts from: of a folder the SHA-256 of its weight files, of a hub id its commit.

    Of a file beyond 64 MiB 64 blocks of 1 MiB are read, evenly spread: training moves every one of them. ``None`` where
    a hub id's commit is not known, as without a copy in the cache.
    """
    folder = Path(name_or_path)
    if not folder.is_dir():
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(name_or_path, "config.json", revision=revision)
        return Path(found).parent.name if isinstance(found, str) else None
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.iterdir() if path.suffix in (".safetensors", ".bin")):
        size = file.stat().st_size
        digest.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as weights:
            for block in range(64):
                weights.seek(max(block << 20, block * (size - (1 << 20)) // 63))
                digest.update(weights.read(1 << 20))
    return digest.hexdigest()


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """A line for each thing that decides a run's numbers and is not what it was: ``packages.torch: 2.12 → 2.13``."""
    known = [key for key in DECIDES if key in before]  # what an older version did not record is not compared
    old, new = (flattened({key: record[key] for key in known if record.get(key)}) for record in (before, now))
    changed = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    return [
        f"{key}: changed" if key == "git_diff" else f"{key}: {old.get(key, 'absent')} → {new.get(key, 'absent')}"
        for key in changed
    ]


def changes_since_start(
    run: Path, config: RunConfig, fingerprints: Mapping[str, str]
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Of a run that is resumed: its rows, model and own code as they are now, a line for each that is not as it was,
    and what its record does not contain.
    """
    model = config.model.name_or_path, config.model.revision
    now = {
        "data_fingerprints": dict(fingerprints),
        "model_fingerprint": model_fingerprint(*model),
        "model_files": model_files(*model),
        "own_code": own_code(config),
    }
    return now, *what_changed(read_manifest(run), now)


def record_changes(run: Path, checkpoint: Path, now: Mapping[str, Any], changed: Iterable[str]) -> None:
    """Write into a run's record that it was resumed from ``checkpoint`` although rows, model or code had changed."""
    record = read_manifest(run)
    accepted = {"behind": checkpoint.name, "changed": [line.strip() for line in changed]}
    record |= {**now, "accepted_changes": [*record.get("accepted_changes", []), accepted]}
    write_json(run / MANIFEST, record)


def check_same_run_again(
    run: Path, before: Mapping[str, Any], config: RunConfig, fingerprints: Mapping[str, str], world_size: int
) -> None:
    """Refuse to repeat ``run`` with other weights, on other rows or another number of processes: it would be another.

    Raises:
        RerunError: naming what differs.
    """
    if before["world_size"] != world_size:
        raise RerunError(
            f"{run} was run on {before['world_size']} processes, and this is {world_size}: each process draws its own "
            f"random numbers. Start {before['world_size']} processes."
        )
    if accepted := before.get("accepted_changes"):
        raise RerunError(
            f"{run} was resumed after {accepted[0]['behind']} with other things than it was started with "
            f"({'; '.join(accepted[0]['changed'])}), so no single run can repeat it. Start a new run with "
            f"evenkeel train {run / CONFIG}."
        )
    weights = model_fingerprint(config.model.name_or_path, config.model.revision)
    if before.get("model_fingerprint") not in (None, weights):
        raise RerunError(
            f"{config.model.name_or_path} holds other weights than {run} started from ("
            f"{before['model_fingerprint'][:12]}…, now {str(weights)[:12]}…). Bring those back, or start a new run."
        )
    for part, fingerprint in fingerprints.items():
        if (was := before["data_fingerprints"].get(part)) != fingerprint:
            raise RerunError(
                f"data.{part} is not what {run} was run on (SHA-256 {str(was)[:12]}…, now {fingerprint[:12]}…). Bring "
                f"back those rows, or start a new run with evenkeel train {run / CONFIG}."
            )


def _git(*arguments: str) -> str | None:
    if not (ROOT / "setup.py").is_file():  # installed: a repository around it would be somebody else's
        return None
    try:
        result = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.decode("utf-8", "backslashreplace").strip()  # a file may be in any encoding


def _machine() -> dict[str, Any]:
    import torch

    return {
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
        "cuda": torch.version.cuda,
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
