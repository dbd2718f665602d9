"""Whatever a run is made of, it is a run or it is refused in words: never a traceback.

Each case edits something of a valid run (`tests.scripts.fuzzed_runs`) and hands it, in a process forked from one that
has imported everything, to what `evenkeel check` calls, or to `evenkeel train` for one optimizer step:

    python -m tests.scripts.test_fuzzed_runs check 2000 [SEED [FIRST]]     # prints what fails, and the rate
    python -m tests.scripts.test_fuzzed_runs train 150 [SEED [FIRST]]
    FUZZED_CHECKS=200 FUZZED_STEPS=20 FUZZED_SEED=5 pytest -m slow tests/scripts/test_fuzzed_runs.py

Held are: a run (0; or still running when its time is over), a refusal (2), the end of a run in words (1). What a
library refuses and we only pass on, with the part of the run that it came from, is held too and counted by itself.
"""

import contextlib
import io
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evenkeel.trainer.run.library_errors import UNEXPLAINED
from tests.scripts.fuzzed_runs import Case, make_case
from tests.tiny_model import save_tiny_model

SEED = 20261122
"""What was looked at while the code was written."""
SECONDS = {"check": 60, "train": 60}
DUMP = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"


@dataclass(frozen=True)
class Outcome:
    """How a case ended: ``run``, ``refused``, ``passed on``, ``traceback`` or ``hangs``, and what was said."""

    kind: str
    what: str
    said: str = ""

    @property
    def holds(self) -> bool:
        return self.kind not in ("traceback", "hangs")


def checked_words(folder: Path, case: Case) -> tuple[int, str]:
    """The check of a case: its status and what it says."""
    from evenkeel.trainer.run.check.check import checked
    from evenkeel.trainer.run.check.report import json_report, text_report

    result = checked(str(folder / "run.yaml"), case.overrides, processes=None)
    json_report(result, "run.yaml")
    return (2 if result.errors else 0), text_report(result, "run.yaml")


def trained_words(folder: Path, case: Case) -> tuple[int, str]:
    """One step of a case's run."""
    from evenkeel.trainer.command.train import main

    return main([str(folder / "run.yaml"), *case.overrides]), ""


def in_child(folder: Path, case: Case, call: Callable[[Path, Case], tuple[int, str]]) -> Outcome:
    """In a process of its own: the case's environment, the launcher before it, then ``call``."""
    from evenkeel.trainer.run.launcher import launched

    os.chdir(folder)
    os.environ.update(case.environment)
    try:
        if case.launcher is not None:
            (folder / "dump.py").write_text(DUMP)
            given = ["--config_file", str(case.launcher), str(folder / "dump.py"), str(folder / "environment.json")]
            if (status := launched(given)) or not (folder / "environment.json").is_file():
                return Outcome("refused" if status == 2 else "traceback", case.what, f"launcher: status {status}")
            dumped = json.loads((folder / "environment.json").read_text())
            if int(dumped.get("WORLD_SIZE", "1")) > 1:
                return Outcome("run", case.what, "several processes were started")
            os.environ.update({name: value for name, value in dumped.items() if "TORCHELASTIC" not in name})
        status, words = call(folder, case)
    except SystemExit as end:
        return Outcome("refused" if end.code == 2 else "traceback", case.what, f"exit {end.code}")
    except BaseException as error:  # noqa: BLE001 whatever it is, it is the finding
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/trainer/" in frame.filename or "/rewards/" in frame.filename]
        ours = [frame for frame in ours if "site-packages" not in frame.filename] or [frames[-1]]
        at = (
            f"{ours[-1].filename.rpartition('/')[2]}:{ours[-1].lineno}, {frames[-1].filename[-40:]}:{frames[-1].lineno}"
        )
        return Outcome("traceback", case.what, f"{type(error).__name__}: {str(error)[:200]!r} at {at}")
    return Outcome({0: "run"}.get(status, "refused"), case.what, f"{status}\n{words}")


def outcomes(
    model: Path, place: Path, how: str, seed: int, numbers: range, *, together: int = 2
) -> Iterator[tuple[int, Outcome]]:
    """Each number with its outcome, ``together`` at a time."""
    call = {"check": checked_words, "train": trained_words}[how]
    _import_everything(model, place)
    waiting, running = [*numbers][::-1], {}
    while waiting or running:
        while waiting and len(running) < together:
            number = waiting.pop()
            folder = place / str(number)
            folder.mkdir()
            try:
                case = make_case(folder, model, seed, number)
            except Exception as error:
                raise AssertionError(f"edit {number} of seed {seed} cannot be made") from error
            reader, writer = os.pipe()
            if (child := os.fork()) == 0:
                os.close(reader)
                _child(folder, case, call, writer)
            os.close(writer)
            running[reader] = number, folder, case, child, time.monotonic() + SECONDS[how]
        soonest = min(end for *_, end in running.values())
        ready = select.select([*running], [], [], max(0.0, soonest - time.monotonic()))[0]
        over = [reader for reader, (*_, end) in running.items() if end < time.monotonic()]
        for reader in {*ready, *over}:
            number, folder, case, child, _ = running.pop(reader)
            yield number, _ended(reader, folder, case, child, in_time=reader in ready)
            shutil.rmtree(folder, ignore_errors=True)


def _child(folder: Path, case: Case, call: Callable[[Path, Case], tuple[int, str]], writer: int) -> None:
    os.setsid()
    said = os.open(folder / "said", os.O_CREAT | os.O_RDWR)
    os.dup2(said, 1), os.dup2(said, 2)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", errors="replace", line_buffering=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", errors="replace", line_buffering=True)
    try:
        outcome = in_child(folder, case, call)
        os.write(writer, json.dumps([outcome.kind, outcome.said[-3000:]]).encode())
    finally:
        os._exit(0)


def _ended(reader: int, folder: Path, case: Case, child: int, *, in_time: bool) -> Outcome:
    """The outcome that a child wrote; its process group ends."""
    written = os.read(reader, 1 << 20) if in_time else b""
    os.close(reader)
    if not in_time or not written:
        status = 0 if not in_time else os.waitpid(child, 0)[1]
        at_it = any((folder / "out").glob("metrics.jsonl")) or bool([*folder.rglob("metrics.jsonl")])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if written or not in_time:
        os.waitpid(child, 0)
    said = (folder / "said").read_text(errors="replace") if (folder / "said").is_file() else ""
    if not in_time:
        return Outcome("run" if at_it else "hangs", case.what, said[-600:])
    if not written:
        return Outcome("traceback", case.what, f"the process ended with {status}: {said[-600:]}")
    kind, words = json.loads(written)
    if "Traceback (most recent call last)" in said:
        kind, words = "traceback", said[-900:]
    if kind in ("run", "refused") and UNEXPLAINED in f"{words}{said}":
        kind = "passed on"
    return Outcome(kind, case.what, f"{words}\n{said[-900:]}".strip())


def _import_everything(model: Path, place: Path) -> None:
    """What every child would import again; nothing that makes a state of its own."""
    import peft  # noqa: F401
    import tensorboard  # noqa: F401
    import wandb  # noqa: F401
    from transformers import AutoModelForCausalLM, AutoTokenizer

    import evenkeel.trainer.command.train  # noqa: F401
    from tests.scripts.fuzzed_runs import _settings

    _settings()
    AutoTokenizer.from_pretrained(model)
    AutoModelForCausalLM.from_pretrained(model)
    from accelerate.commands import launch  # noqa: F401
    from torch.distributed.elastic.multiprocessing import api, errors  # noqa: F401
    from torch.utils import tensorboard as writing  # noqa: F401

    from evenkeel.trainer import RLVRTrainer  # noqa: F401


def failures(how: str, number: int, seed: int, model: Path, place: Path) -> list[str]:
    """What does not hold, in words."""
    return [
        f"{number} of {seed}: {outcome.what}: {outcome.kind}: {outcome.said}"
        for number, outcome in outcomes(model, place, how, seed, range(number))
        if not outcome.holds
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "variable", "number"), [("check", "FUZZED_CHECKS", 2000), ("train", "FUZZED_STEPS", 150)]
)
def test_an_edited_run_is_a_run_or_refused_in_words(
    how: str, variable: str, number: int, tiny_model: Path, tmp_path: Path
):
    number, seed = int(os.environ.get(variable, number)), int(os.environ.get("FUZZED_SEED", SEED))
    assert failures(how, number, seed, tiny_model, tmp_path) == []


def main(how: str, number: str, seed: str = str(SEED), first: str = "0") -> None:
    began, counts = time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        model = save_tiny_model(Path(place) / "tiny")
        for each, outcome in outcomes(model, Path(place), how, int(seed), range(int(first), int(first) + int(number))):
            counts[outcome.kind] += 1
            if outcome.kind not in ("run", "refused"):
                passed = [line for line in outcome.said.splitlines() if UNEXPLAINED in line]
                words = "\n".join(passed) if outcome.kind == "passed on" else outcome.said
                sys.stdout.write(f"{each} {outcome.kind} | {outcome.what}\n    {words}\n")
                sys.stdout.flush()
    held = counts.total() - counts["traceback"] - counts["hangs"]
    took = time.monotonic() - began
    sys.stdout.write(
        f"{how}, seed {seed}: {held} of {counts.total()} without a traceback {dict(counts)}, {took:.0f} s\n"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
