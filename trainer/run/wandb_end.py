"""W&B at the end of a run: what it cannot upload stays on the disk and does not hold the processes."""

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import NoReturn

import psutil

from evenkeel.trainer.run.heartbeat import HEARTBEAT

SECONDS = 120.0
"""The end of a run waits so long: enough for a server that answers, and a GPU should not wait for one that does not."""
_left = False


def finish_wandb() -> None:
    """Finish W&B's run, if there is one in this process, within `SECONDS`; else say how to complete it later.

    All that was logged is in the run's folder before it is uploaded, so that nothing is lost. W&B itself would wait for
    days.
    """
    global _left
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is None:
        return
    folder = Path(run.dir).parent
    HEARTBEAT.enter("Uploading to W&B")

    def finish() -> None:
        with contextlib.suppress(Exception):  # of the uploader that is ended below
            run.finish()

    finishing = threading.Thread(target=finish, name="wandb-finish", daemon=True)
    finishing.start()
    finishing.join(SECONDS)
    if not finishing.is_alive():
        if run.offline:
            print(f"W&B was offline. To send the run: wandb sync {folder.parent}/offline-run-*-{run.id}", flush=True)
        return
    print(
        f"\nW&B has not taken everything within {SECONDS:g} s: the network or the server is away. Nothing is "
        f"lost, all of it is on the disk. When W&B can be reached again: wandb sync --include-online {folder}",
        flush=True,
    )
    _left = True
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if any("wandb-core" in word for word in process.cmdline()):
                process.kill()
    finishing.join(10)


def end_process(status: int) -> NoReturn:
    """Exit with ``status``; where W&B's uploader was ended, without the traceback that it would print."""
    sys.stdout.flush()
    sys.stderr.flush()
    if _left:
        os._exit(status)
    sys.exit(status)
