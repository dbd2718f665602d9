"""Whole runs killed at random moments: what goes on afterwards is bit for bit the run that nobody killed.

    RANDOM_KILLS=20 RANDOM_KILLS_SEED=1 bash scripts/test.sh -m slow tests/scripts/test_random_kills.py -s

GRPO with a state of its own, Lopti and LoRA, on one process and on two; the victim is the process, one of the ranks, or
the launcher, and the moment any between its start and its end: loading, generation, update, a checkpoint half written.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.paths import ROOT
from tests.scripts.test_resume import assert_same_state
from tests.scripts.test_train import metrics, untimed, write_run
from tests.waiting import wait_until

KILLS = int(os.environ.get("RANDOM_KILLS", "20"))
SEED = int(os.environ.get("RANDOM_KILLS_SEED", str(time.time_ns() % 10**6)))
GONE_WITHIN = 60.0
"""Seconds after which no process of a killed run may live."""
MARK = "EVENKEEL_TEST_RUN"
STEPS = 12
LOADING = 10.0
STEP = 0.5
"""Seconds that cover what the moment of a kill is drawn from: the start of a run, and a step with its checkpoint."""


def run_file(folder: Path, model: Path, name: str, processes: int) -> Path:
    return write_run(
        folder,
        model,
        name,
        model={"name_or_path": str(model), "lora": {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}},
        num_processes=processes,
        algorithm={"advantage": "tests.scripts.strategies:FadingGRPO", "update_schedule": "lopti"},
        trl={"max_steps": STEPS, "per_device_train_batch_size": 16 // processes},
    )


def noted(line: str) -> None:
    """For the person who reads the output of a failed test, or of ``-s``."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Launch:
    """A run in processes that are known by a variable of their environment, wherever they end up."""

    def __init__(self, file: Path, processes: int) -> None:
        self.mark = f"{file.stem}-{time.time_ns()}"
        several = ["-m", "evenkeel", "launch", "--config_file", "configs/accelerate/cpu_two_processes.yaml"]
        script = ["-m", "evenkeel", "train", str(file), "--resume", "auto"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), MARK: self.mark}
        if processes > 1:
            environment["ACCELERATE_USE_CPU"] = "true"
        self.said = file.with_suffix(".said")
        with self.said.open("w") as said:
            command = [sys.executable, *(several if processes > 1 else []), *script]
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=said)
        self.started = time.monotonic()

    def living(self, **variables: str) -> list[int]:
        """Its processes with these variables, verifiers' included; the launcher as a zombie does not count."""
        self.process.poll()
        wanted = {MARK: self.mark, **variables}.items()
        return [each.pid for each in psutil.process_iter(["environ"]) if wanted <= (each.info["environ"] or {}).items()]

    def rank(self, rank: int) -> int | None:
        """The process of that rank; ``None`` before it is there."""
        return min(self.living(RANK=str(rank)), default=None)

    def await_end(self, seconds: float) -> float:
        """Seconds until no process of it was left."""
        started = time.monotonic()
        while self.living():
            assert time.monotonic() - started < seconds, [
                Path(f"/proc/{number}/cmdline").read_text() for number in self.living()
            ] + [self.said.read_text()[-3000:]]
            time.sleep(0.2)
        return time.monotonic() - started


@contextmanager
def launched(file: Path, processes: int) -> Iterator[Launch]:
    launch = Launch(file, processes)
    try:
        yield launch
    finally:
        for number in launch.living():
            os.kill(number, signal.SIGKILL)


def trained_to_the_end(file: Path, processes: int) -> float:
    """Let the run go on to its end; the seconds that took."""
    with launched(file, processes) as launch:
        assert launch.process.wait(timeout=600) == 0, launch.said.read_text()[-3000:]
        return time.monotonic() - launch.started


def reached(folder: Path) -> int:
    """The last step that the newest run called ``cut`` has logged."""
    files = sorted(folder.glob("cut*/metrics.jsonl"), key=lambda file: file.stat().st_mtime)
    return max((line["step"] for line in metrics(files[-1].parent)), default=0) if files else 0


def await_step(launch: Launch, folder: Path, step: int, processes: int) -> None:
    """Return when the run has logged ``step`` and its ranks are there, or it has ended."""

    def is_there() -> bool:
        ranks_are_there = processes == 1 or None not in map(launch.rank, range(processes))
        return launch.process.poll() is not None or (reached(folder) >= step and ranks_are_there)

    wait_until(is_there, lambda: launch.said.read_text()[-3000:])


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_that_is_killed_at_random_ends_as_the_one_that_is_not(tiny_model: Path, tmp_path: Path, processes: int):
    noted(f"RANDOM_KILLS={KILLS} RANDOM_KILLS_SEED={SEED}, {processes} processes")
    draw = random.Random(SEED + processes)
    whole, cut = (run_file(tmp_path, tiny_model, name, processes) for name in ("whole", "cut"))
    trained_to_the_end(whole, processes)
    for number, step in enumerate(sorted(draw.choices(range(STEPS - 1), k=-(-KILLS // 2)))):
        victim = draw.choice(["launcher", *range(processes)] if processes > 1 else ["launcher"])
        with launched(cut, processes) as launch:
            loading = reached(tmp_path) >= step
            await_step(launch, tmp_path, step, processes)
            time.sleep(draw.uniform(0, LOADING if loading else STEP))
            target = launch.process.pid if victim == "launcher" else launch.rank(victim)
            if launch.process.poll() is not None or target is None:
                noted(f"  {number}: it had ended")
                continue
            os.kill(target, signal.SIGKILL)
            gone, at = launch.await_end(GONE_WITHIN), reached(tmp_path)
            said = launch.said.read_text()
        when = "loading or just behind" if loading else "training, behind"
        noted(f"  {number}: {victim} killed {when} step {at}, all gone in {gone:.1f} s")
        assert "Traceback" not in said, said[-3000:]
        if victim in (0, 1):
            assert len(re.findall("Rank . .process .*was ended by SIGKILL|another rank", said)) == 1, said[-3000:]
    trained_to_the_end(cut, processes)
    ended = [path for path in tmp_path.glob("cut*") if (path / "summary.json").exists()]
    assert len(ended) == 1  # begun anew where the kill came before the first checkpoint, in a directory of its own
    whole, last = tmp_path / "whole", f"checkpoint-{STEPS}"
    assert (whole / last / "evenkeel.pt").exists()  # the state of the strategy
    assert_same_state(whole / last, ended[0] / last, "adapter_model.safetensors")
    assert untimed(whole) == untimed(ended[0])


def ended(launch: Launch, status: int) -> str:
    """What was said until all processes were gone."""
    assert launch.process.wait(timeout=300) == status, launch.said.read_text()[-3000:]
    launch.await_end(GONE_WITHIN)
    said = launch.said.read_text()
    assert "Traceback" not in said, said[-5000:]
    return said


@pytest.mark.slow
def test_the_launcher_told_to_stop_saves_on_both_ranks(tiny_model: Path, tmp_path: Path, monkeypatch):
    run, slowly = tmp_path / "cut", tmp_path / "slowly"
    monkeypatch.setenv("WAIT_WHILE", str(slowly))
    monkeypatch.setenv("WAIT_SECONDS", "0.2")
    slowly.touch()

    def file(steps: int) -> Path:
        """Of a run of two processes; written anew it is that run with another end."""
        rewards = [{"verifier": "tests.scripts.verifiers:unhurried"}]
        trl = {"per_device_train_batch_size": 8, "max_steps": steps}
        sections = {"evaluation": {"before": False}, "rewards": rewards, "trl": trl}
        return write_run(tmp_path, tiny_model, "cut", num_processes=2, **sections)

    with launched(file(500), 2) as launch:
        await_step(launch, tmp_path, 3, 2)
        launch.process.send_signal(signal.SIGTERM)
        said = ended(launch, 130)
    slowly.unlink()
    (stopped,) = map(int, re.findall(r"Stopped at step (\d+) with a checkpoint", said))
    record = json.loads((run / f"checkpoint-{stopped}" / "manifest.json").read_text())
    assert {"rng_state_0.pth", "rng_state_1.pth", "evenkeel.pt"} <= {*record["files"]}

    with launched(file(stopped + 2), 2) as launch:
        assert f"resumed from checkpoint-{stopped}" in ended(launch, 0)
    assert [line["step"] for line in metrics(run) if "loss" in line] == [*range(1, stopped + 3)]
