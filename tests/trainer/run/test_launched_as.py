"""DeepSpeed or FSDP in the launcher's file, and something else in truth: refused."""

import os
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.command.train import main
from evenkeel.trainer.run import launch
from evenkeel.trainer.run.launched_as import check_device_for, check_engine_runs
from tests.scripts.test_train import SETTINGS, run_file

__all__ = ["run_file"]


@pytest.mark.parametrize(
    ("variable", "named"),
    [("ACCELERATE_USE_FSDP", "FSDP needs GPUs"), ("ACCELERATE_USE_DEEPSPEED", "DS_ACCELERATOR=cpu")],
)
def test_a_run_on_the_cpu_is_none_of_deepspeed_or_fsdp(run_file, tmp_path, capsys, monkeypatch, variable, named):
    monkeypatch.setenv(variable, "true")
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    monkeypatch.delenv("ACCELERATE_TORCH_DEVICE", raising=False)  # a run on a CPU in this process leaves it
    assert SETTINGS["trl"]["use_cpu"] is True
    assert main([str(run_file)]) == 2
    said = capsys.readouterr().err
    assert "ACCELERATE_USE_CPU = true and trl.use_cpu = true" in said
    assert named in said
    assert not (tmp_path / "run").exists()
    assert "ACCELERATE_TORCH_DEVICE" not in os.environ


@pytest.mark.parametrize("runs", ["MULTI_CPU", "NO", "MULTI_GPU"])
def test_what_runs_is_compared_with_what_was_asked_for(monkeypatch, runs):
    accelerator = SimpleNamespace(distributed_type=SimpleNamespace(value=runs), num_processes=2)
    check_engine_runs(accelerator)
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    with pytest.raises(Refusal, match=f"asks for DEEPSPEED, and what runs is {runs} on 2 processes"):
        check_engine_runs(accelerator)
    check_engine_runs(SimpleNamespace(distributed_type=SimpleNamespace(value="DEEPSPEED"), num_processes=2))


@pytest.mark.slow
def test_as_many_processes_start_as_are_asked_for(tmp_path):
    """accelerate itself starts one, and says nothing, where several are asked for a CPU."""
    script = tmp_path / "rank.py"
    script.write_text("import os, pathlib\npathlib.Path(__file__).with_name(os.environ.get('RANK', 'alone')).touch()\n")
    command = [sys.executable, "-m", "evenkeel", "launch", "--cpu", "--num_processes", "3", "--main_process_port", "0"]
    subprocess.run([*command, str(script)], cwd=tmp_path, check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {"rank.py", "0", "1", "2"}


@pytest.mark.parametrize(
    ("engine", "runs", "processes", "refused"),
    [
        (None, "NO", 1, None),
        (None, "MULTI_GPU", 8, None),
        ("DEEPSPEED", "DEEPSPEED", 2, None),
        (None, "NO", 2, "2 processes were started for a device that this machine does not have"),
        ("DEEPSPEED", "NO", 3, "each would train alone. On a CPU DeepSpeed runs with DS_ACCELERATOR=cpu"),
        ("FSDP", "MULTI_CPU", 2, "asks for FSDP, and what runs is MULTI_CPU on 2 processes"),
    ],
)
def test_processes_that_would_train_alone_are_refused_before_anything_is_made(
    monkeypatch, engine, runs, processes, refused
):
    if engine is not None:
        monkeypatch.setenv(f"ACCELERATE_USE_{engine}", "true")
    state = SimpleNamespace(distributed_type=SimpleNamespace(value=runs), num_processes=processes)
    if refused is None:
        check_device_for(state)
    else:
        with pytest.raises(Refusal) as caught:
            check_device_for(state)
        assert refused in str(caught.value)


def test_what_is_refused_behind_the_directory_takes_it_away(run_file, tmp_path, capsys, monkeypatch):
    def refused(accelerator: object) -> None:
        raise Refusal("not what was asked for", code="launch")

    monkeypatch.setattr(launch, "check_engine_runs", refused)
    with patch.dict(os.environ):
        assert main([str(run_file)]) == 2
    assert not (tmp_path / "run").exists()
