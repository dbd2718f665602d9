"""accelerate's launcher with the exit status of what it launches."""

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from trainer.run.library_errors import ended_in_words
from trainer.run.lost_ranks import killed_rank
from trainer.run.processes import REFUSED, STOPPED, say

_MOST_PROCESSES = 100_000
SECONDS_TO_SAVE = "3600"
"""How long ranks that were told to stop may take; torch's own 30 seconds cost most of them their checkpoint."""


def launched(arguments: Sequence[str]) -> int:
    """Run ``accelerate launch`` with ``arguments``; the first failing rank's exit status, or 0.

    accelerate and torch turn every status into 1 and print a traceback of their own behind what the ranks have said.
    """
    from accelerate.commands.launch import launch_command, launch_command_parser
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", SECONDS_TO_SAVE)
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    given = launch_command_parser().parse_args(list(arguments))
    if (fault := _unstartable(given)) is not None:
        say(fault)
        return REFUSED
    try:
        launch_command(given)
    except ChildFailedError as failure:
        rank, first = failure.get_first_failure()
        if first.exitcode < 0:  # else the rank has said why
            print(f"\n{killed_rank(rank, first.pid, first.exitcode)}", file=sys.stderr, flush=True)
        return _status(first.exitcode)
    except subprocess.CalledProcessError as failure:  # of one process
        return _status(failure.returncode)
    except (SignalException, KeyboardInterrupt):
        return STOPPED
    except Exception as error:  # noqa: BLE001 — accelerate raises anything at its file, before a process is started
        ended_in_words(error, f"The launcher cannot start {given.training_script}{_file_of(given)}")
        return REFUSED
    return 0


def _unstartable(given: Any) -> str | None:
    """Why what is named as the script is none, with the way out; ``None`` where it may be one."""
    script, file = given.training_script, given.config_file
    if file is not None and not Path(file).is_file():
        return f"--config_file {file}: there is no such file. Those that are shipped stand in configs/accelerate/."
    try:
        read = YAML(typ="safe").load(Path(file)) if file is not None else None
    except YAMLError:  # accelerate says what is wrong with it
        read = None
    count = given.num_processes or (read.get("num_processes") if isinstance(read, dict) else None)
    if isinstance(count, int) and count > _MOST_PROCESSES:
        return f"num_processes = {count:,} is no number of GPUs. Write one process for each GPU."
    if given.module or given.no_python:
        return None
    if Path(script).suffix in (".yaml", ".yml"):
        return (
            f"{script} is a file of settings, and the launcher starts a script. Write: scripts/launch.py … "
            f"scripts/train.py {script}; a launcher's own file stands behind --config_file."
        )
    if not Path(script).is_file():
        return f"There is no script {script}. Check the path; scripts/train.py is the one that trains."
    return None


def _file_of(given: Any) -> str:
    return f" as {given.config_file} says" if given.config_file else ""


def _status(code: int) -> int:
    """As a shell says it: of a process that signal n ended, 128 + n."""
    return code if code >= 0 else 128 - code
