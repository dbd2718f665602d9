"""accelerate's launcher with the exit status of what it launches."""

import logging
import os
import subprocess
import sys
from collections.abc import Sequence

from trainer.run.lost_ranks import killed_rank
from trainer.run.processes import STOPPED

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
    try:
        launch_command(launch_command_parser().parse_args(list(arguments)))
    except ChildFailedError as failure:
        rank, first = failure.get_first_failure()
        if first.exitcode < 0:  # else the rank has said why
            print(f"\n{killed_rank(rank, first.pid, first.exitcode)}", file=sys.stderr, flush=True)
        return _status(first.exitcode)
    except subprocess.CalledProcessError as failure:  # of one process
        return _status(failure.returncode)
    except (SignalException, KeyboardInterrupt):
        return STOPPED
    return 0


def _status(code: int) -> int:
    """As a shell says it: of a process that signal n ended, 128 + n."""
    return code if code >= 0 else 128 - code
