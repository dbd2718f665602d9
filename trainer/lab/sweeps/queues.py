"""Queues of attempts, on this machine or on SLURM, both through submitit."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.sweeps.attempt import Attempt
from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory
from evenkeel.trainer.lab.sweeps.forking import MODULE, Forks
from evenkeel.trainer.lab.sweeps.process_group import signal_group
from evenkeel.trainer.lab.sweeps.schema import LocalExecution, SlurmExecution
from evenkeel.trainer.run.processes import handled

_NO_LIMIT_MINUTES = 60 * 24 * 365
_SECONDS_BETWEEN_SQUEUES = 5.0


class SchedulerError(Refusal):
    """The queue failed, perhaps for a while: a limit is reached, or its controller is busy."""


class LocalQueue:
    """Attempts as processes of this machine; each gets the GPUs of a free slot through CUDA_VISIBLE_DEVICES.

    With ``forks`` they are forked where that is safe. `start`, `stop` and `kill` raise `SchedulerError`.
    """

    def __init__(self, folder: Path, slots: Sequence[Sequence[str]], forks: Forks | None = None) -> None:
        self.folder, self.forks = folder, forks
        self.capacity = len(slots)
        self.free = [list(slot) for slot in slots]
        self.jobs: dict[str, Any] = {}  # None of a fork

    def start(self, label: str, attempt: Attempt) -> dict[str, Any]:
        """Submit an attempt; returns the ``entry`` by which it is found again."""
        from submitit import LocalExecutor

        gpus = self.free.pop(0)
        attempt.environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
        try:
            if self.forks is not None and (forked := self.forks.start(attempt)) is not None:
                self.jobs[label] = None
                return {"job_id": str(forked), "label": label, "gpus": gpus, "forked": True}
            executor = LocalExecutor(self.folder)
            executor.update_parameters(timeout_min=_NO_LIMIT_MINUTES)
            with handled(signal.SIG_IGN, signal.SIGINT, signal.SIGHUP):  # cells outlive it
                job = executor.submit(attempt)
        except OSError as error:  # no memory for a process, or no disk for its description
            self.free.insert(0, gpus)
            raise SchedulerError(str(error)) from error
        self.jobs[label] = job
        return {"job_id": job.job_id, "label": label, "gpus": gpus}

    def adopt(self, entry: dict[str, Any]) -> None:
        """Take over an attempt that an earlier sweep process started."""
        if entry.get("gpus") in self.free:
            self.free.remove(entry["gpus"])
        else:  # killed before it was recorded, or other slots than then
            entry["gpus"] = self.free.pop() if self.free else None

    def is_over(self, entry: dict[str, Any], directory: CellDirectory) -> bool:
        """Whether the attempt no longer runs or waits."""
        job = self.jobs.get(entry["label"])
        waits = _is_attempt(int(entry["job_id"])) if job is None and "job_id" in entry else job and not job.done()
        return not waits and not directory.is_running()

    def release(self, entry: dict[str, Any]) -> None:
        """Free what an attempt that is over was given."""
        if entry["gpus"] is not None:
            self.free.append(entry["gpus"])

    def stop(self, entry: dict[str, Any], directory: CellDirectory) -> None:
        """Ask an attempt to save a checkpoint and end."""
        process = directory.runner() or (int(entry["job_id"]) if entry["label"] in self.jobs else None)
        if process is not None:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def kill(self, entry: dict[str, Any], directory: CellDirectory) -> None:
        """End an attempt at once."""
        record = directory.attempt(entry["number"])
        if directory.is_running() and "process_group" in record:
            signal_group(record["process_group"], signal.SIGKILL)


class SlurmQueue:
    """The same as SLURM jobs, found again by their name; ``squeue`` says which of them are left."""

    def __init__(self, folder: Path, execution: SlurmExecution) -> None:
        self.folder = folder
        self.execution = execution
        self.capacity = execution.parallel
        self._listed: set[str] = set()
        self._listed_at = 0.0

    def start(self, label: str, attempt: Attempt) -> dict[str, Any]:
        from submitit import SlurmExecutor

        try:
            executor = SlurmExecutor(self.folder)
            executor.update_parameters(**slurm_parameters(self.execution, label))
            job = executor.submit(attempt)
        except (RuntimeError, OSError) as error:  # also where SLURM is not on this machine
            raise SchedulerError(_one_line(str(error))) from error
        self._listed_at = 0.0
        return {"job_id": job.job_id, "label": label}

    def adopt(self, entry: dict[str, Any]) -> None:
        """Nothing is to be done, nor at `release`: SLURM does it."""

    release = adopt

    def is_over(self, entry: dict[str, Any], directory: CellDirectory) -> bool:
        if "ended" in directory.attempt(entry["number"]):
            return True
        if time.monotonic() - self._listed_at > _SECONDS_BETWEEN_SQUEUES:
            try:
                self._listed = set(_slurm("squeue", "--me", "--noheader", "--format=%j").split())
            except SchedulerError:  # the controller is busy or restarts: ask again later
                return False
            self._listed_at = time.monotonic()
        return entry["label"] not in self._listed

    def stop(self, entry: dict[str, Any], directory: CellDirectory) -> None:
        _slurm("scancel", "--me", "--state=PENDING", f"--name={entry['label']}")
        _slurm("scancel", "--me", "--state=RUNNING", "--signal=TERM", f"--name={entry['label']}")

    def kill(self, entry: dict[str, Any], directory: CellDirectory) -> None:
        _slurm("scancel", "--me", f"--name={entry['label']}")


Queue = LocalQueue | SlurmQueue


def slurm_parameters(execution: SlurmExecution, label: str) -> dict[str, Any]:
    """The sweep's settings as submitit's parameters; one task a node, which launches the node's processes."""
    return {
        "job_name": label,
        "nodes": execution.nodes,
        "ntasks_per_node": 1,
        "time": execution.time,
        "signal_delay_s": execution.stop_before_end,
        "gpus_per_node": execution.gpus or None,
        "setup": execution.setup or None,
        "additional_parameters": execution.arguments,
    }


def gpu_slots(visible: Sequence[str], per_cell: int, parallel: int) -> list[list[str]]:
    """``parallel`` disjoint groups of ``per_cell`` consecutive visible GPUs; a `Refusal` where there are too few."""
    if per_cell * parallel > len(visible):
        most = len(visible) // per_cell
        instead = f"executor: {{parallel: {most}}}" if most else f"launch: {{num_processes: {len(visible)}}}"
        raise Refusal(
            f"{parallel} cells of {per_cell} GPUs do not fit on the {len(visible)} of this machine. Write {instead}."
        )
    return [list(visible[index * per_cell : (index + 1) * per_cell]) for index in range(parallel)]


def visible_gpus() -> list[str]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, or all of this machine."""
    if (chosen := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [entry for entry in chosen.split(",") if entry]
    import torch

    return [str(index) for index in range(torch.cuda.device_count())]


def local_queue(folder: Path, execution: LocalExecution, use_cpu: bool, processes: int, forks: Forks) -> LocalQueue:
    """The queue of this machine: a cell gets a GPU for each process, and none where it trains on the CPU."""
    visible = [] if use_cpu else visible_gpus()
    can_fork = not visible and processes == 1 and sys.platform == "linux"
    slots = gpu_slots(visible, processes if visible else 0, execution.parallel)
    return LocalQueue(folder, slots, forks if can_fork else None)


def _is_attempt(process: int) -> bool:
    """Whether the process of this id was started by submitit or is a fork; an id may be reused."""
    try:
        return any("submitit.local" in word or word == MODULE for word in psutil.Process(process).cmdline())
    except psutil.Error:
        return False


def _slurm(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except subprocess.CalledProcessError as error:
        raise SchedulerError(_one_line(error.stderr) or str(error)) from error
    except OSError as error:
        raise SchedulerError(str(error)) from error


def _one_line(text: str) -> str:
    return " ".join(text.split())
