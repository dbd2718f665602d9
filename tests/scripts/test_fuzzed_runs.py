"""Whatever a run is made of, it is a run that holds every setting, or it is refused in words: never a traceback.

Each case edits something of a valid run (`tests.scripts.fuzzed_runs`) and hands it, in a process forked from one that
has imported everything, to what `evenkeel check` calls, or to `evenkeel train` for one optimizer step:

    FUZZED_CHECKS=200 FUZZED_STEPS=20 FUZZED_SEED=5 pytest -m slow tests/scripts/test_fuzzed_runs.py

Held are: a run (0; or still running when its time is over), a refusal (2), the end of a run in words (1). What a
library refuses and we only pass on, with the part of the run that it came from, is held too and counted by itself.
"""

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any
from unittest import mock

import pytest

from evenkeel.trainer.run.check.check import checked
from evenkeel.trainer.run.check.report import json_report, text_report
from evenkeel.trainer.run.library_errors import UNEXPLAINED
from tests.scripts.fuzzed_runs import Case, dropped, make_case, settings

SEED = int(os.environ.get("FUZZED_SEED", "20261122"))
SECONDS = 60
DUMP = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"
FORK, FORKING = multiprocessing.get_context("fork"), Lock()


@dataclass(frozen=True)
class Outcome:
    """How a case ended: ``run``, ``refused``, ``passed on``, ``dropped``, ``traceback`` or ``hangs``; and its words."""

    number: int
    kind: str
    what: str
    said: str

    @property
    def holds(self) -> bool:
        return self.kind in ("run", "refused", "passed on")


def ended(how: str, folder: Path, case: Case) -> tuple[str, str]:
    """The kind of the outcome and its words: the case's environment, the launcher before it, then what is tried."""
    from evenkeel.trainer.command.launch import main as launched
    from evenkeel.trainer.command.train import main

    os.chdir(folder)
    os.environ.update(case.environment)
    try:
        if case.launcher is not None:
            (folder / "dump.py").write_text(DUMP)
            given = ["--config_file", str(case.launcher), str(folder / "dump.py"), str(folder / "environment.json")]
            if (status := launched(given)) or not (folder / "environment.json").is_file():
                return "refused" if status == 2 else "traceback", f"launcher: status {status}"
            dumped = json.loads((folder / "environment.json").read_text())
            if int(dumped.get("WORLD_SIZE", "1")) > 1:
                return "run", "several processes were started"
            os.environ.update({name: value for name, value in dumped.items() if "TORCHELASTIC" not in name})
        if how == "train":
            if status := main([str(folder / "run.yaml"), *case.overrides]):
                return "refused", f"status {status}"
            report = (folder / "said").read_text(errors="replace")
        else:
            result = checked(str(folder / "run.yaml"), case.overrides, processes=None)
            json_report(result, "run.yaml")
            report = text_report(result, "run.yaml")
            if result.errors:
                return "refused", report
        lost = dropped(folder / "run.yaml", case.overrides, report)
        return "dropped" if lost else "run", f"{report}\n{', '.join(lost)}"
    except SystemExit as end:
        return "refused" if end.code == 2 else "traceback", f"exit {end.code}"


def outcome(model: Path, place: Path, how: str, seed: int, number: int) -> Outcome:
    """Of one case, in a process of its own."""
    folder = place / str(number)
    folder.mkdir()
    with FORKING:  # or the other case's process would hold this one's pipe open
        reader, writer = FORK.Pipe(duplex=False)
        child = FORK.Process(target=_child, args=(how, folder, model, seed, number, writer))
        child.start()
        writer.close()
    in_time, written = reader.poll(SECONDS), None
    with contextlib.suppress(EOFError, OSError):
        written = reader.recv() if in_time else None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid or 0, signal.SIGKILL)
    child.join()
    what, said = (
        path.read_text(errors="replace") if (path := folder / name).is_file() else "" for name in ("what", "said")
    )
    kind, words = written or ("traceback", f"the process ended with {child.exitcode}")
    if not in_time:
        kind, words = "run" if [*folder.rglob("metrics.jsonl")] else "hangs", ""
    elif "Traceback (most recent call last)" in said:
        kind = "traceback"
    elif kind in ("run", "refused") and UNEXPLAINED in f"{words}{said}":
        kind = "passed on"
    shutil.rmtree(folder, ignore_errors=True)
    return Outcome(number, kind, what, f"{words[-3000:]}\n{said[-900:]}".strip())


def _child(how: str, folder: Path, model: Path, seed: int, number: int, writer: Connection) -> None:
    os.setsid()
    said = os.open(folder / "said", os.O_CREAT | os.O_RDWR)
    os.dup2(said, 1), os.dup2(said, 2)
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", buffering=1)  # noqa: SIM115
    try:
        writer.send(ended(how, folder, make_case(folder, model, seed, number)))
    except BaseException:  # noqa: BLE001 whatever it is, it is the finding
        traceback.print_exc()
    finally:
        os._exit(0)


def outcomes(model: Path, place: Path, how: str, seed: int, numbers: range) -> Iterator[Outcome]:
    """Of each number, two at a time."""
    _import_everything(model)
    with ThreadPoolExecutor(2) as threads:
        yield from threads.map(partial(outcome, model, place, how, seed), numbers)


def _import_everything(model: Path) -> None:
    """What every child would import again; nothing that makes a state of its own."""
    import peft  # noqa: F401
    import wandb  # noqa: F401
    from accelerate.commands import launch  # noqa: F401
    from torch.distributed.elastic.multiprocessing import api, errors  # noqa: F401
    from torch.utils import tensorboard  # noqa: F401
    from transformers import AutoModelForCausalLM, AutoTokenizer

    import evenkeel.trainer.command.train  # noqa: F401
    from evenkeel.trainer import RLVRTrainer  # noqa: F401

    settings()
    AutoTokenizer.from_pretrained(model)
    AutoModelForCausalLM.from_pretrained(model)


def test_each_setting_of_an_accepted_edit_is_held_or_named(tiny_model: Path, tmp_path: Path):
    known, accepted = dict[str, Any](), 0
    for number in range(int(os.environ.get("FUZZED_FILES", "40"))):
        file = tmp_path / "case" / "run.yaml"  # one place, so that rows are read once
        shutil.rmtree(file.parent, ignore_errors=True)
        file.parent.mkdir()
        with mock.patch.dict(os.environ):  # of which TRL's arguments set some
            case = make_case(file.parent, tiny_model, SEED, number, of_file=True)
            result = checked(str(file), case.overrides, processes=None, runs_code=False, known=known)
            if not result.errors:
                accepted += 1
                assert dropped(file, case.overrides, text_report(result, "run.yaml")) == [], case.what
    assert accepted >= 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "variable", "number"), [("check", "FUZZED_CHECKS", 2000), ("train", "FUZZED_STEPS", 150)]
)
def test_an_edited_run_is_a_run_or_refused_in_words(
    how: str, variable: str, number: int, tiny_model: Path, tmp_path: Path
):
    number = int(os.environ.get(variable, number))
    assert [each for each in outcomes(tiny_model, tmp_path, how, SEED, range(number)) if not each.holds] == []
