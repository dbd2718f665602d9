"""accelerate's launcher with the exit status of what it launches."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from evenkeel.errors import Refusal, suggest
from evenkeel.trainer.run.config.shipped import named_file, shipped_files
from evenkeel.trainer.run.libraries import importing
from evenkeel.trainer.run.library_errors import in_words
from evenkeel.trainer.run.processes import REFUSED, STOPPED, say

SECONDS_TO_SAVE = "3600"
"""How long ranks may take after they were asked to stop; in torch's default of 30 seconds few can save."""


def launched(arguments: Sequence[str]) -> int:
    """Run ``accelerate launch`` with ``arguments``; the first failing rank's exit status, or 0.

    accelerate and torch turn every status into 1 and print a traceback of their own after the ranks' messages.
    Raises as `parsed` does.
    """
    with importing():
        from accelerate.commands.launch import launch_command
        from torch.distributed.elastic.multiprocessing.api import SignalException
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", SECONDS_TO_SAVE)
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    given, count = parsed(arguments)
    _start_as_many_as_asked(given, count)
    try:
        launch_command(given)
    except ChildFailedError as failure:
        rank, first = failure.get_first_failure()
        if first.exitcode < 0:  # else the rank has printed why
            name = signal.Signals(-first.exitcode).name
            why = " Perhaps memory ran out." if name == "SIGKILL" else ""
            what = f"Rank {rank} (process {first.pid}) was ended by {name}, and so were the others.{why}"
            print(f"\n{what} To go on: --resume auto.", file=sys.stderr, flush=True)
        return _exit_status(first.exitcode)
    except subprocess.CalledProcessError as failure:  # of one process
        return _exit_status(failure.returncode)
    except (SignalException, KeyboardInterrupt):
        return STOPPED
    except Exception as error:  # noqa: BLE001 — accelerate raises anything
        say(f"The launcher cannot start {given.training_script}: {in_words(error)}")
        return REFUSED
    return 0


def parsed(arguments: Sequence[str]) -> tuple[Any, int]:
    """accelerate's parsed ``arguments``, with shipped files by their short names; and the number of processes.

    Raises:
        Refusal: accelerate refuses them, or its file does not exist.
    """
    from accelerate.commands.launch import launch_command_parser

    parser = launch_command_parser()
    parser.error = _refuse
    given = parser.parse_args([*arguments])
    run_file = named_file(given.training_script)
    if not given.module and not given.no_python and not os.path.isfile(run_file):
        raise Refusal(f"There is no file {run_file}. {suggest(run_file, shipped_files())}".rstrip(), code="launch")
    if not given.module and Path(run_file).suffix in (".yaml", ".yml"):
        given.training_script_args = ["train", run_file, *given.training_script_args]
        given.module, given.training_script = True, "evenkeel"
    if given.config_file is not None:
        given.config_file = named_file(given.config_file)
    if given.config_file is not None and not os.path.isfile(given.config_file):
        raise Refusal(f"--config_file {given.config_file}: there is no such file.", code="launch")
    count = given.num_processes or _settings_of(given.config_file).get("num_processes")
    return given, count if isinstance(count, int) else 1


def _refuse(message: str) -> NoReturn:
    raise Refusal(f"accelerate launch: {message}", code="launch")


def _settings_of(file: str | None) -> dict[str, Any]:
    """accelerate's file; empty without one, or if it is not a YAML mapping, which accelerate reports."""
    with contextlib.suppress(YAMLError):
        read = YAML(typ="safe").load(Path(file)) if file is not None else None
        return read if isinstance(read, dict) else {}
    return {}


def _start_as_many_as_asked(given: Any, count: int) -> None:
    """Make accelerate start ``count`` processes: on a CPU, or without an engine, it would silently start one."""
    file = _settings_of(given.config_file)
    kind = file.get("distributed_type", "NO")
    engines = (given.multi_gpu, given.tpu, given.use_deepspeed, given.use_fsdp, given.use_megatron_lm)
    if count < 2 or any((*engines, given.mpirun_hostfile)):
        return
    if given.cpu or file.get("use_cpu") or kind == "MULTI_CPU":
        given.cpu, os.environ["ACCELERATE_USE_CPU"] = False, "true"
    given.multi_gpu = kind in ("NO", "MULTI_CPU")


def _exit_status(code: int) -> int:
    """As a shell gives it: 128 + n for a process that signal n ended."""
    return code if code >= 0 else 128 - code
