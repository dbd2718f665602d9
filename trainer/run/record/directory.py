"""The directory of one run: which one it is, who owns it, and whether it can be continued under given settings."""

import errno
import itertools
import os
import re
import socket
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.layers import changes
from evenkeel.trainer.run.record.files import CONFIG, LOCK
from evenkeel.trainer.run.record.run_record import RunRecord

MAY_CHANGE = ("name", "output_dir", "num_processes", "evaluation", "logging", "stopping", "vllm")
"""Sections that may differ between a run and its continuation: they do not change what is trained."""
ENGINES_PLACE = ("vllm_server_host", "vllm_server_port", "vllm_server_base_url", "vllm_server_timeout")
"""Where vLLM answers: a job that is queued again gets other nodes."""
TRL_MAY_CHANGE = ("save_strategy", "save_steps", "save_total_limit", "logging_steps", *ENGINES_PLACE)
LENGTH = ("max_steps", "num_train_epochs")
"""May differ too, where the learning rate does not depend on how long the run is."""
CONSTANT = ("constant", "constant_with_warmup")
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of a file system that has no locks."""


def fresh_directory(output_dir: str | Path) -> Path:
    """Make and return ``output_dir``, or the first of ``output_dir-2``, ``-3``, … that does not exist yet.

    Nothing is overwritten, even if several runs start at once: a directory belongs to the run that made it.
    """
    first = Path(output_dir)
    first.parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        candidate = first if number == 1 else first.with_name(f"{first.name}-{number}")
        with suppress(FileExistsError):
            candidate.mkdir()
            return candidate
    raise AssertionError


def newest_directory(output_dir: str | Path) -> Path | None:
    """The newest directory of the runs of ``output_dir``, which are itself, ``-2``, ``-3``, …; ``None`` without one.

    A directory ``-2`` whose run calls that its own ``output_dir`` belongs to another experiment.
    """
    first = Path(output_dir)
    numbered = re.compile(rf"{re.escape(first.name)}-([1-9][0-9]*)")
    names = [path.name for path in first.parent.glob("*") if path.is_dir()]
    numbers = [int(found[1]) for name in names if (found := numbered.fullmatch(name))]
    for number in sorted(numbers, reverse=True):
        path = first.with_name(f"{first.name}-{number}")
        own = None
        with suppress(Refusal, ValueError):  # of a run that was stopped as it began
            own = RunRecord(path).raw_config.get("output_dir")
        if Path(str(own)).name != path.name:
            return path
    return first if first.is_dir() else None


def check_is_run(folder: Path) -> None:
    """Refuse a folder that is not the directory of a run."""
    if not (folder / CONFIG).is_file():
        instead = f" Name its run, {folder.parent}." if (folder.parent / CONFIG).is_file() else ""
        raise Refusal(f"{folder} is not the directory of a run: it has no {CONFIG}.{instead}")


def owned(run: Path) -> FileLock:
    """Lock ``run`` until the lock is released or garbage-collected, or its process ends or is killed.

    Child processes do not keep it. It holds between hosts where the file system supports ``flock``; where it does not,
    a message says so, and the run continues without a lock.

    Raises:
        Refusal: another process holds it.
    """
    # A soft lock, a file that outlives a killed process, would keep a run from being resumed.
    lock = FileLock(run / LOCK, timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        owner = (run / LOCK).read_text().strip() or "another process"
        raise Refusal(f"{run} is locked by {owner}, which works there. Wait until it ends.") from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        print(f"{run} cannot be locked ({error.strerror}): start no second training in it.", flush=True)
        return lock
    (run / LOCK).write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
    return lock


def check_same_run(config: RunConfig, run: RunRecord, started: int, world_size: int) -> None:
    """Refuse to continue ``run``, begun by ``started`` processes, if that would train something else."""
    if started != world_size:
        what = f"{run.path} was trained on {started} processes and would be resumed on {world_size}. Start {started}."
        raise Refusal(what, code="resume")
    saved, current = run.config.model_dump(), config.model_dump()
    constant = current["trl"].get("lr_scheduler_type") in CONSTANT
    best = [settings["evaluation"]["keep_best"] for settings in (saved, current)]
    for settings, metric in zip((saved, current), best, strict=True):
        for section in MAY_CHANGE:
            settings.pop(section, None)
        if None not in best:  # the best value so far is of this metric
            settings["evaluation.keep_best"] = metric
        for key in (*TRL_MAY_CHANGE, *(LENGTH if constant else ())):
            settings["trl"].pop(key, None)
    if lines := changes(saved, current):
        shown, again = "\n".join(f"  {line}" for line in lines), run.path / CONFIG
        if any(line.startswith(tuple(f"trl.{key}:" for key in LENGTH)) for line in lines):
            shown += "\nThe learning rate depends on how long the run is."
        raise Refusal(
            f"{run.path} was started with other settings:\n{shown}\nResume it with {again}, or start a new run.",
            code="resume",
        )
