"""A run on a real file system that is full for a while."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from evenkeel.trainer.command.train import main
from tests.paths import ROOT
from tests.scripts import filling_verifier
from tests.scripts.test_resume import assert_same_state, run_file, untimed
from tests.scripts.test_train import metrics

MOUNTED = 'mount -t tmpfs -o size=12m none "$1" && shift && "$@"; status=$?; cp -r "$DISK/run" "$KEPT"; exit $status'


def can_mount(folder: Path) -> bool:
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(folder)]
    return shutil.which("unshare") is not None and subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.slow
def test_a_disk_that_is_full_for_a_while_costs_a_checkpoint_and_nothing_else(tiny_model: Path, tmp_path: Path):
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    if not can_mount(disk):
        pytest.skip("no file system can be mounted here")
    settings = {"max_steps": 8, "save_steps": 2, "save_total_limit": 2}
    whole = run_file(tmp_path, tiny_model, "whole", **settings)
    saved = YAML(typ="safe").load(whole.read_text())
    saved["rewards"] = [{"verifier": "tests.scripts.filling_verifier:filling"}]
    YAML(typ="safe").dump(saved, whole)
    environment = {"FILLER": str(tmp_path / "none"), "FULL_FROM": "0", "FULL_TO": "0"}
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setenv(name, value)
        filling_verifier.judged = 0
        assert main([str(whole)]) == 0
        in_all = filling_verifier.judged

    # From the end: 8 judgements of the last evaluation, then 16 a step. Full from step 4 on, room again in step 6.
    environment = {"FILLER": str(disk / "filler"), "FULL_FROM": str(in_all - 79), "FULL_TO": str(in_all - 50)}
    environment |= {"DISK": str(disk), "KEPT": str(kept), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin:/usr/sbin"}
    train = [sys.executable, "-m", "evenkeel", "train", str(whole), f"output_dir={disk / 'run'}", "--resume", "auto"]
    command = ["unshare", "-rm", "bash", "-c", MOUNTED, "bash", str(disk), *train]
    result = subprocess.run(
        command, cwd=ROOT, env={**environment, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, timeout=240
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "checkpoint-4 was not saved: it needs about" in result.stdout
    assert f"the disk mounted at {disk} has 0 free. checkpoint-2 is what counts" in result.stdout
    assert {path.name for path in kept.glob("checkpoint-*")} == {"checkpoint-6", "checkpoint-8"}
    assert_same_state(kept / "checkpoint-8", tmp_path / "whole" / "checkpoint-8")
    assert untimed(kept) == untimed(tmp_path / "whole")
    assert len(metrics(kept)) > 8
