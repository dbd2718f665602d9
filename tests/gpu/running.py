"""One path after the other, each within the time that is left, and what became of it."""

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.gpu.paths import SERVER_PORT, AcceptancePath, PathError, Place
from tests.paths import ROOT

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
ENOUGH = 20.0
"""Seconds that must be left for a path to be started at all."""


def attempt(path: AcceptancePath, place: Place, seconds: float) -> dict[str, Any]:
    """Run ``path`` for at most ``seconds``.

    Returns:
        ``name``, ``what``, ``advice``, ``status`` (passed, failed, not run), ``reason``, ``seconds``, ``facts``,
        ``log``.
    """
    outcome: dict[str, Any] = {"name": path.name, "what": path.what, "status": NOT_RUN, "reason": path.missing(place)}
    outcome |= {"advice": path.advice, "seconds": None, "facts": {}, "log": None}
    if outcome["reason"]:
        return outcome
    if seconds < ENOUGH and path.commands(place):
        return {**outcome, "reason": "the time was spent on the paths before it"}
    started, log = time.monotonic(), place.folder / f"{path.name}.log"
    outcome["log"] = log.name
    try:
        with log.open("w") as output, _served(path, place, output, started + seconds):
            for command in path.commands(place):
                _run(command, path, output, started + seconds)
        outcome |= {"status": PASSED, "facts": path.facts(place)}
        place.earlier[path.name] = place.run(path.name)
    except PathError as failure:
        outcome |= {"status": FAILED, "reason": str(failure)}
    except (OSError, KeyError, ValueError) as error:  # what should have been written is not there
        outcome |= {"status": FAILED, "reason": f"{type(error).__name__}: {error}"}
    return {**outcome, "seconds": round(time.monotonic() - started, 1)}


def _run(command: list[str], path: AcceptancePath, output: Any, deadline: float) -> None:
    """One command to its end; its whole process group dies with the deadline."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=_environment(0 if path.one_gpu else None),
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        status = process.wait(timeout=max(deadline - time.monotonic(), 1))
    except subprocess.TimeoutExpired:
        raise PathError("did not end within the time that was left") from None
    finally:
        _end(process)
    if status:
        raise PathError(f"exit status {status}: {_last_line(Path(output.name))}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


@contextmanager
def _served(path: AcceptancePath, place: Place, output: Any, deadline: float) -> Iterator[None]:
    """The path's server, if it has one, answering; on the second GPU."""
    if path.server is None:
        yield
        return
    server = subprocess.Popen(
        path.server(place),
        cwd=ROOT,
        env=_environment(1),
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        while not _answers():
            if server.poll() is not None:
                raise PathError(f"the server ended: {_last_line(Path(output.name))}")
            if time.monotonic() > deadline:
                raise PathError("the server did not answer within the time that was left")
            time.sleep(1)
        yield
    finally:
        _end(server)


def _answers() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{SERVER_PORT}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _environment(gpu: int | None) -> dict[str, str]:
    """Ours, with this checkout first and, if one is named, only that of the visible GPUs."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")
    shown = {} if gpu is None or gpu >= len(visible) else {"CUDA_VISIBLE_DEVICES": visible[gpu]}
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": paths, "WANDB_MODE": "disabled", **shown}


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"
