"""DeepSpeed or FSDP in the launcher's file, and something else in truth: refused."""

import os
from types import SimpleNamespace

import pytest

from scripts.train import main
from tests.scripts.test_train import SETTINGS, run_file
from trainer.run.launched_as import LaunchError, check_engine_runs, on_cpu

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
    with pytest.raises(LaunchError, match=f"asks for DEEPSPEED, and what runs is {runs} on 2 processes"):
        check_engine_runs(accelerator)
    check_engine_runs(SimpleNamespace(distributed_type=SimpleNamespace(value="DEEPSPEED"), num_processes=2))


def test_the_way_out_is_not_the_mistake():
    """ACCELERATE_USE_CPU=true is right for plain data-parallel alone."""
    assert "ACCELERATE_USE_CPU=true" in on_cpu(None)
    assert "without ACCELERATE_USE_CPU" in on_cpu("DEEPSPEED")
    assert "cpu_two_processes.yaml" in on_cpu("FSDP")
