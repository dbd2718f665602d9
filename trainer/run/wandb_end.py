"""W&B at the end of a run: what it cannot upload stays on the disk and does not hold the processes."""

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

from trainer.run.signs_of_life import SIGNS

_left = False


def finish_wandb(seconds: float) -> None:
    """Finish W&B's run, if there is one in this process, within ``seconds``; else say how to complete it later.

    All that was logged is in the run's folder before it is uploaded, so that nothing is lost. W&B itself would wait for
    days.
    """
    global _left
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is None:
        return
    folder = Path(run.dir).parent
    SIGNS.begins(lambda: "Uploading to W&B")
    finishing = threading.Thread(target=_finish, args=(run,), name="wandb-finish", daemon=True)
    finishing.start()
    finishing.join(seconds)
    if not finishing.is_alive():
        if run.offline:
            print(f"W&B was offline. To send the run: wandb sync {folder.parent}/offline-run-*-{run.id}", flush=True)
        return
    print(
        f"\nW&B has not taken everything within logging.wandb_upload_seconds = {seconds:g}: the network or the server "
        "is away. Nothing is lost, all of it is on the disk. When W&B can be reached again: "
        f"wandb sync --include-online {folder}",
        flush=True,
    )
    _left = True
    for process in _uploaders():
        os.kill(process, signal.SIGKILL)
    finishing.join(10)


def end_process(status: int) -> NoReturn:
    """Exit with ``status``; where W&B was left, without its own last words, which are a traceback."""
    sys.stdout.flush()
    sys.stderr.flush()
    if _left:
        os._exit(status)
    sys.exit(status)


def _finish(run: Any) -> None:
    with contextlib.suppress(Exception):  # of the uploader that was ended
        run.finish()


def _uploaders() -> list[int]:
    """W&B's own processes below this one."""
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    numbers = {int(number) for file in children for number in file.read_text().split()}
    return [number for number in numbers if b"wandb-core" in Path(f"/proc/{number}/cmdline").read_bytes()]
