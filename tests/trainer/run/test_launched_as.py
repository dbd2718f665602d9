"""Launches under which something else would be trained than is asked for: refused, or the run file counts."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from trl import GRPOConfig

from evenkeel.errors import Refusal
from evenkeel.trainer.command.train import main
from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.preflight import check_launched, follow_run_file
from tests.scripts.test_train import SETTINGS, run_file

__all__ = ["run_file"]


def test_a_run_on_the_cpu_is_none_of_fsdp(run_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", "cpu")
    assert SETTINGS["trl"]["use_cpu"] is True
    assert main([str(run_file)]) == 2
    assert "FSDP" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_as_many_processes_start_as_are_asked_for(tmp_path):
    """accelerate itself starts one, and says nothing, where several are asked for a CPU."""
    script = tmp_path / "rank.py"
    script.write_text("import os, pathlib\npathlib.Path(__file__).with_name(os.environ.get('RANK', 'alone')).touch()\n")
    command = [sys.executable, "-m", "evenkeel", "launch", "--cpu", "--num_processes", "3", "--main_process_port", "0"]
    subprocess.run([*command, str(script)], cwd=tmp_path, check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {"rank.py", "0", "1", "2"}


def arguments(kind: str, processes: int, **others: Any) -> Any:
    """What is asked of TRL's arguments."""
    state = SimpleNamespace(distributed_type=SimpleNamespace(value=kind))
    return SimpleNamespace(**{"distributed_state": state, "world_size": processes, "use_cpu": False, **others})


def deepspeed(bf16: bool, precision: str) -> Any:
    """Of two processes whose DeepSpeed file says ``bf16``."""
    file = {"bf16": {"enabled": bf16}, "fp16": {"enabled": False}}
    plugin = SimpleNamespace(deepspeed_config=file)
    return arguments("DEEPSPEED", 2, deepspeed_plugin=plugin, mixed_precision=precision)


@pytest.mark.parametrize(
    ("engine", "args", "started", "is_refused"),
    [
        (None, arguments("NO", 1), 1, False),
        ("DEEPSPEED", arguments("DEEPSPEED", 2), 2, False),
        (None, arguments("NO", 2), 2, True),
        (None, arguments("MULTI_CPU", 1), 2, True),
        ("DEEPSPEED", arguments("MULTI_CPU", 2, use_cpu=True), 2, True),
        ("FSDP", arguments("MULTI_CPU", 2), 2, True),
        (None, deepspeed(True, "no"), 2, True),
        (None, deepspeed(False, "bf16"), 2, True),
        (None, deepspeed(True, "bf16"), 2, False),
    ],
)
def test_processes_alone_or_without_their_engine_or_precision_are_refused(
    monkeypatch, engine, args, started, is_refused
):
    monkeypatch.delenv("ACCELERATE_USE_CPU", raising=False)
    if engine is not None:
        monkeypatch.setenv(f"ACCELERATE_USE_{engine}", "true")
    with pytest.raises(Refusal) if is_refused else nullcontext():
        check_launched(args, started)


FILES = [({}, "bf16"), ({"bf16": False}, "no"), ({"fp16": True, "bf16": False}, "fp16")]


@pytest.mark.parametrize(("trl", "wanted"), FILES)
def test_the_run_file_says_the_precision(tmp_path: Path, monkeypatch, trl, wanted):
    sections = {"model": {"name_or_path": "m"}, "data": {"train": {"path": "a/b"}}, "rewards": [{"verifier": "x:y"}]}
    (tmp_path / "run.yaml").write_text(json.dumps({**sections, "trl": {**trl, "use_cpu": True}}))
    config = load_config(tmp_path / "run.yaml")
    for launchers in ("no", "bf16", "fp16", "fp8"):
        with patch.dict(os.environ, {"ACCELERATE_MIXED_PRECISION": launchers}):
            assert follow_run_file(config) == launchers
            args = GRPOConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", **trl)
            assert args.mixed_precision == wanted
