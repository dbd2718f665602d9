"""SHA-256 of the files that an answer rests on: configs, data, code and results, by path from the claim's folder.

`changes` lists every file that differs in any byte. Code is listed by its path in the package, and is compared with
the installed package. Checkpoints, logs and weights of the runs are not included.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import with_config
from typing_extensions import TypedDict

from evenkeel.errors import Refusal
from evenkeel.trainer.evaluation.shares import CONFIDENCE
from evenkeel.trainer.lab.claims.answering import Answered
from evenkeel.trainer.lab.reports.run_files import RecordedRun
from evenkeel.trainer.lab.sweeps.checking import environment_of_cells
from evenkeel.trainer.lab.sweeps.schema import Sweep
from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.config.loading import local_path
from evenkeel.trainer.run.config.shipped import CONFIGS
from evenkeel.trainer.run.config.yaml_document import read_file
from evenkeel.trainer.run.record.files import (
    CONFIG,
    EVALUATIONS,
    MANIFEST,
    METRICS,
    OPEN,
    SUMMARY,
    read_record,
    write_json,
)

PACKAGE = CONFIGS.parent
ROOMS = ("trainer", "rewards")
FILES = ("configs", "data", "code", "results")
SUFFIX = ".certificate.json"
"""The certificate lies next to the file of the claims: ``order.yaml``, ``order.certificate.json``."""


def certificate(file: Path, sweep: Sweep, sweep_file: Path, answers: Mapping[str, Answered]) -> dict[str, Any]:
    """The answers to the claims of ``file`` by name, with the hashes of all that they rest on."""
    folder = file.absolute().parent
    runs = {run.path: run for found in answers.values() for run in found.runs}
    manifests = [run.manifest for run in runs.values()]
    prints = [json.dumps(each.get("data_fingerprints"), sort_keys=True) for each in manifests]
    content = {
        "file": file.name,
        "answers": {name: _answer(found) for name, found in answers.items()},
        "confidence": CONFIDENCE,
        "seeds": sweep.seeds,
        "commits": sorted({str(each.get("git_revision")) for each in manifests if each.get("git_revision")}),
        "data_fingerprints": sorted({*prints}),
        "configs": _hashed(_configs(file, sweep_file, sweep), folder),
        "data": _hashed(_data(sweep), folder),
        "code": _code(),
        "results": _hashed(_results(runs.values(), Path(sweep.output_dir)), folder),
    }
    return {**content, "sha256": _own_hash(content)}


def _answer(found: Answered) -> dict[str, Any]:
    return {
        **found.claim.model_dump(),
        "answer": found.answer.answer,
        "reason": found.answer.reason,
        "differences": {name: asdict(each) for name, each in found.answer.differences.items()},
        "excludes_what_matters": found.answer.excludes_what_matters,
        "seeds_needed": found.answer.seeds_needed,
        "held_out": found.held_out,
        "cost": asdict(found.cost),
    }


def write_certificate(content: Mapping[str, Any], path: Path) -> None:
    """Write it, unless the same claims were answered from other seeds that overlap.

    Raises:
        Refusal: it was, or the file cannot be written.
    """
    before = read_certificate(path) if path.exists() else {}
    if before and before["seeds"] != content["seeds"] and {*before["seeds"]} & {*content["seeds"]}:
        raise Refusal(
            f"{path} answers these claims from the seeds {before['seeds']}, this one from {content['seeds']}. Take "
            "seeds that are all new, and another name.",
            code="seeds-added",
        )
    try:
        write_json(path, content)
    except OSError as error:
        raise Refusal(
            f"{path} cannot be written: {error.strerror}. Copy the claim: evenkeel configs copy claims/NAME FILE."
        ) from error


@with_config(OPEN)
class CertificateRecord(TypedDict):
    """A certificate, as far as it is read."""

    sha256: str
    answers: dict[str, dict[str, Any]]
    configs: dict[str, str]
    data: dict[str, str]
    code: dict[str, str]
    results: dict[str, str]


def read_certificate(path: Path) -> dict[str, Any]:
    """The content of a certificate; a `Refusal` where the file is none, or cannot be read."""
    return read_record(path, CertificateRecord, "`evenkeel claim FILE` writes a certificate.")


def changes(path: Path) -> list[str]:
    """A line for every file that is not what the certificate says, and for the certificate itself."""
    content = read_certificate(path)
    folder = path.absolute().parent
    own = content.pop("sha256")
    found = [] if own == _own_hash(content) else [f"certificate: {path.name}: changed"]
    for kind in FILES:
        recorded = content[kind]
        now = _code() if kind == "code" else _hashed((folder / name for name in recorded), folder)
        for name in sorted({*recorded, *now}):
            if recorded.get(name) != now.get(name):
                what = "new" if name not in recorded else "missing" if name not in now else "changed"
                found.append(f"{kind}: {name}: {what}")
    return found


def _configs(file: Path, sweep_file: Path, sweep: Sweep) -> Iterator[Path]:
    """The claims, their sweep and the run file, with what they extend."""
    yield file
    for start in (sweep_file, Path(sweep.config)):
        yield start
        base = read_file(start).child("extends")
        if base is not None and (there := local_path(str(base.value), base.origin.folder)) is not None:
            yield there


def _data(sweep: Sweep) -> Iterator[Path]:
    """The files of the initial policy and of the rows that are on this machine."""
    with environment_of_cells(sweep.environment):
        config = load_config(sweep.config)
    sources = [source for _, source in config.data.placed_sources]
    for name in (config.model.name_or_path, *(source.path for source in sources)):
        if name and Path(name).exists():
            yield from _files(Path(name))


def _results(runs: Iterable[RecordedRun], root: Path) -> Iterator[Path]:
    """The files of a sweep and of the runs that the report reads."""
    yield from (root / "sweep.json", root / "tuning" / "sweep.json")
    for run in runs:
        yield from run.path.parent.glob("*.json")
        yield from (run.path / name for name in (CONFIG, MANIFEST, METRICS, SUMMARY))
        yield from _files(run.path / EVALUATIONS)


def _code() -> dict[str, str]:
    return _hashed((path for room in ROOMS for path in _files(PACKAGE / room)), PACKAGE)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for inside in sorted(path.rglob("*")) if path.is_dir() else ():
        if inside.is_file() and "__pycache__" not in inside.parts:
            yield inside


def _hashed(paths: Iterable[Path], folder: Path) -> dict[str, str]:
    """Path from ``folder`` → SHA-256, of the files that are there."""
    return {
        Path(os.path.relpath(path, folder)).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted({path.absolute() for path in paths})
        if path.is_file()
    }


def _own_hash(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
