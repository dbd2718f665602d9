"""The Dockerfile is built on a bare Debian, and the quickstart runs in the image as the user that it makes."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

PROGRAMS = ("buildah", "mmdebstrap")
ABSENT = [name for name in PROGRAMS if shutil.which(name) is None]
WHY = f"not installed: {', '.join(ABSENT)}" if ABSENT else "only root can build without a user namespace"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.docker,
    pytest.mark.skipif(bool(ABSENT) or os.geteuid() != 0, reason=f"no image can be built here: {WHY}"),
]
SELF_TEST = """
from evenkeel.rewards import build_verifier
verifier = build_verifier("code_tests")
row = {"inputs": ["2\\n"], "outputs": ["4\\n"]}
right, wrong = (verifier(f"```python\\nprint(int(input()) {op} 2)\\n```", row) for op in ("*", "-"))
print("sandbox", right.score, wrong.score)
"""


class Buildah:
    """buildah with its images in a folder of its own, and the network, certificates and wheels of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, seconds: float = 1800) -> str:
        storage = ["--root", str(self.folder / "root"), "--runroot", str(self.folder / "run")]
        result = subprocess.run(
            ["buildah", *storage, *arguments],
            cwd=ROOT,
            env={**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert result.returncode == 0, result.stdout[-6000:]
        return result.stdout

    def lent(self) -> list[str]:
        """What a build needs of the host where that reaches packages in a way of its own."""
        wheels = os.environ.get("PIP_FIND_LINKS", "")
        settings = {
            "find-links": wheels,
            "cert": os.environ.get("PIP_CERT"),
            "index-url": os.environ.get("PIP_INDEX_URL"),
        }
        lines = ["[global]", *(f"{name} = {value}" for name, value in settings.items() if value)]
        (self.folder / "pip.conf").write_text("\n".join(lines) + "\n")
        folders = [path for path in ("/etc/ssl/certs", "/etc/resolv.conf", *wheels.split()) if Path(path).exists()]
        volumes = [f"{path}:{path}:ro" for path in folders] + [f"{self.folder / 'pip.conf'}:/etc/pip.conf:ro"]
        return ["--network=host", *(f"--volume={volume}" for volume in volumes)]


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """With the image ``evenkeel`` built on Debian 12; its gigabytes go when the tests end."""
    folder = tmp_path_factory.mktemp("buildah")
    tar = folder / "debian.tar"
    bootstrap = ["mmdebstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", str(tar)]
    subprocess.run(bootstrap, check=True, capture_output=True, timeout=900)
    build = Buildah(folder)
    try:
        container = build("from", "scratch").split()[-1]
        build("add", "-q", container, str(tar), "/")
        build("commit", "-q", container, "localhost/debian")
        build("bud", *build.lent(), "--build-arg=BASE_IMAGE=localhost/debian", "--tag=localhost/evenkeel", ".")
        yield build
    finally:
        subprocess.run(["buildah", "--root", folder / "root", "--runroot", folder / "run", "rm", "--all"], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def run(buildah: Buildah, *command: str) -> str:
    container = buildah("from", "localhost/evenkeel").split()[-1]
    quiet = ["--env=HF_HUB_OFFLINE=1", "--env=WANDB_MODE=offline", "--env=OMP_NUM_THREADS=1"]
    return buildah("run", *quiet, container, "--", *command)


def test_the_sandbox_judges_programs_in_the_image(buildah: Buildah):
    """Its self-test comes first: a kernel or a container that it does not trust is refused in words."""
    assert "sandbox 1.0 0.0" in run(buildah, "python", "-c", SELF_TEST)


def test_the_quickstart_runs_in_the_image(buildah: Buildah):
    launch = ["accelerate", "launch", "--config_file", "configs/accelerate/one_gpu.yaml", "--mixed_precision", "no"]
    train = [
        "-m",
        "evenkeel",
        "train",
        "configs/quickstart.yaml",
        "output_dir=runs/quickstart",
        "logging.report_to=none",
    ]
    script = f"id -u && {' '.join([*launch, *train])} && cat runs/quickstart/summary.json"
    said = run(buildah, "bash", "-c", script)
    assert said.splitlines()[0] == "10001", "not the user without rights"
    summary = json.loads(said[said.rindex("\n{") :])
    assert summary["optimizer_steps"] == 25
    assert summary["accuracy_after"] > summary["accuracy_before"] + 0.2
