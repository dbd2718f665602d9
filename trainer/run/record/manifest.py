"""What a run was made of: command, code, versions, data, model and machine; and what has changed since."""

import hashlib
import json
import os
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.layers import flattened
from evenkeel.trainer.run.record.files import CONFIG, MANIFEST, write_json
from evenkeel.trainer.run.record.run_record import RunRecord

ROOT = Path(__file__).parents[3]
ENVIRONMENT = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUBLAS_WORKSPACE_CONFIG", "NCCL_ALGO", "EVENKEEL_OFF")
"""Variables that change the order of sums, and with it the last digits of every number."""
START = ("data_fingerprints", "model_files", "own_code")
"""Keys of `starting_point`."""
DECIDES = (
    *("git_revision", "git_diff", "python", "packages", "world_size", *START),
    *("branch", "environment", "machine", "choices"),
)
"""Keys that decide whether the same configuration gives the same numbers again."""

_INSTALLED = tuple(
    f"{Path(sysconfig.get_path(name)).resolve()}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_MODEL_FILES = (".safetensors", ".bin", ".json", ".jinja", ".model", ".txt", ".tiktoken", ".py")
_OF_A_RUN = ("trainer_state.json", "manifest.json", "logged_so_far_", "training_args.bin")
"""Beginnings of files that a checkpoint holds with its model."""
_WHOLE_BYTES = 64 << 20


def starting_point(config: RunConfig, fingerprints: Mapping[str, str]) -> dict[str, Any]:
    """Hashes of what a run starts from, with the ``fingerprints`` of the rows by part.

    Its parts must have been built, so that their modules are imported.
    """
    files = policy_files(config)
    return {"data_fingerprints": dict(fingerprints), "model_files": files, "own_code": own_code()}


def write_manifest(run: Path, config: RunConfig, world_size: int, start: Mapping[str, Any]) -> None:
    """``config.yaml``, which starts the same run again, and ``manifest.json``, with the `starting_point`."""
    run.mkdir(parents=True, exist_ok=True)
    config.save_resolved(run / CONFIG)
    record = {
        "command": sys.argv,
        **surroundings(),
        "git_diff": _git("diff", "HEAD"),
        "seed": config.run_seed,
        "world_size": world_size,
        **start,
        "branch": None if config.branch_of is None else content_hash(Path(config.branch_of) / MANIFEST),
    }
    write_json(run / MANIFEST, record)


def read_manifest(run: Path) -> dict[str, Any]:
    """The record of ``run``; a `Refusal` where there is none, or it does not say what the run started from."""
    record = RunRecord(run).manifest
    if missing := [key for key in ("world_size", *START) if key not in record]:
        raise Refusal(f"{run / MANIFEST} does not say {', '.join(missing)}. Bring it back, or start a new run.")
    return record


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """A line for each thing that decides a run's numbers and is not what it was: ``packages.torch: 2.12 → 2.13``.

    Only keys in both records are compared, and only modules that both imported: a new import changes another file.
    The commit of a hub id, which is not always known, is compared where both have it.
    """
    known = [key for key in DECIDES if key in before and key in now]
    old, new = (
        {place: value for key in known if record[key] for place, value in flattened(record[key], key).items()}
        for record in (before, now)
    )
    changed = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    return [
        f"{key}: changed" if key == "git_diff" else f"{key}: {_shown(old.get(key))} → {_shown(new.get(key))}"
        for key in changed
        if (key in old and key in new) or not (key.startswith("own_code.") or key == "model_files.commit")
    ]


def _shown(value: Any) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) < 40 else f"{text[:12]}…"  # a hash


def record_changes(run: Path, checkpoint: Path, start: Mapping[str, Any], changed: Iterable[str]) -> None:
    """Write into a run's record that it was resumed from ``checkpoint`` although rows, model or code had changed."""
    record = read_manifest(run)
    accepted = {"after": checkpoint.name, "changed": [*changed]}
    record |= {**start, "accepted_changes": [*record.get("accepted_changes", []), accepted]}
    write_json(run / MANIFEST, record)


def record_choices(run: Path, choices: Mapping[str, bool]) -> list[str]:
    """Record `Experiment.choices` when a run begins; when it resumes, return a line for each changed choice."""
    record = read_manifest(run)
    if "choices" not in record:
        write_json(run / MANIFEST, {**record, "choices": dict(choices)})
    return differences({"choices": record.get("choices", choices)}, {"choices": choices})


def check_same_run_again(run: Path, before: Mapping[str, Any], start: Mapping[str, Any], world_size: int) -> None:
    """Refuse to repeat ``run`` from another model, other rows or another number of processes: it would be another."""
    if before["world_size"] != world_size:
        raise Refusal(f"{run} ran on {before['world_size']} processes, this is {world_size}. Start as many.")
    instead = f"Start a new run: evenkeel train {run / CONFIG}."
    if accepted := before.get("accepted_changes"):
        shown = "; ".join(accepted[0]["changed"])
        raise Refusal(f"{run} was resumed after {accepted[0]['after']} with changes ({shown}). {instead}")
    if changed := differences(before, {**start, "own_code": {}}):
        shown = "".join(f"\n  {line}" for line in changed)
        raise Refusal(f"{run} was started from other rows or another model:{shown}\n{instead}")


def data_fingerprint(rows: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 of the rows in their order, of every column: equal exactly when the data are equal."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, ensure_ascii=True, default=repr).encode() + b"\n")
    return digest.hexdigest()


def content_hash(file: Path) -> str:
    """SHA-256 of a file; above 64 MiB, of its size and 64 evenly spaced blocks of 1 MiB: training changes all."""
    size = file.stat().st_size
    digest = hashlib.sha256(f"{size}\n".encode())
    with file.open("rb") as content:
        if size <= _WHOLE_BYTES:
            digest.update(content.read())
        else:
            for block in range(64):
                content.seek(block * (size - (1 << 20)) // 63)
                digest.update(content.read(1 << 20))
    return digest.hexdigest()


def policy_files(config: RunConfig) -> dict[str, str]:
    """`model_files` of the policy, and the file of ``model.chat_template``."""
    model = config.model
    files = model_files(model.name_or_path, model.revision)
    if model.chat_template is not None and not model.raw_prompts:
        files["model.chat_template"] = content_hash(Path(model.chat_template))
    return files


def model_files(name_or_path: str, revision: str | None) -> dict[str, str]:
    """File → hash, of the files of a model's folder: weights, configuration, tokenizer, template, code of its own.

    For a hub id, its commit; empty if that is unknown, as without a copy in the cache.
    """
    folder = model_folder(name_or_path, revision)
    if folder is None:
        return {}
    if not Path(name_or_path).is_dir():
        return {"commit": folder.name}
    files = (path for path in folder.iterdir() if path.suffix in _MODEL_FILES and path.is_file())
    return {path.name: content_hash(path) for path in sorted(files) if not path.name.startswith(_OF_A_RUN)}


def model_folder(name: str, revision: str | None) -> Path | None:
    """The folder of a model on this machine, or in the hub's cache; ``None`` where there is none."""
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(name, "config.json", revision=revision)
    except ValueError:  # no hub id
        return None
    return Path(found).parent if isinstance(found, str) else None


def own_code() -> dict[str, str]:
    """Module → hash of its file, of every imported module that is not Python's, not installed and not ours.

    Modules that a part imports later, and files that it reads, are missed.
    """
    named = {name: getattr(module, "__dict__", {}).get("__file__") for name, module in [*sys.modules.items()]}
    files = {name: _resolved(file) for name, file in sorted(named.items()) if isinstance(file, str)}
    ours = ("evenkeel", "__main__", "__mp_main__")
    return {
        name: content_hash(file)
        for name, file in files.items()
        if name.partition(".")[0] not in ours and file.is_file() and not _is_installed(file)
    }


@cache
def _resolved(file: str) -> Path:
    """Once for each of some 2,500 modules: each costs a fifth of a millisecond."""
    return Path(file).resolve()


def _is_installed(file: Path) -> bool:
    """A file is Python's or a package's, of this virtual environment or of one below it."""
    return str(file).startswith(_INSTALLED) or not {"site-packages", "dist-packages"}.isdisjoint(file.parts)


def surroundings() -> dict[str, Any]:
    """Code, versions, variables and machine."""
    return {
        "git_revision": _git("rev-parse", "HEAD"),
        "python": platform.python_version(),
        "packages": dict(sorted((found.name.lower(), found.version) for found in distributions())),
        "environment": {name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        "machine": _machine(),
    }


@cache
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

    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {
        "cpu": next(models, platform.machine()),
        "torch_threads": torch.get_num_threads(),
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
        "cuda": torch.version.cuda,
    }
