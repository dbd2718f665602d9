"""The command's table and JSON."""

import json
import shutil
from pathlib import Path

import pytest

from evenkeel.trainer.command.gradients import main
from tests.scripts.test_train import write_run


@pytest.mark.slow
def test_a_configurations_policy_is_sampled_and_replayed(tiny_model: Path, tmp_path: Path, capsys):
    file = write_run(tmp_path, tiny_model)
    asked = ["--strategies", "rloo,adv_reweight+lopti", "--batches", "3", "--to", str(tmp_path)]
    assert main([str(file), *asked]) == 0
    found = json.loads((tmp_path / "gradients.json").read_text())
    assert [each["name"] for each in found["rows"][:3]] == ["grpo", "rloo", "adv_reweight+lopti"]
    assert (found["batches"], found["groups"]) == (3, 12)
    assert "| `rloo` |" in capsys.readouterr().out
    figures = ["--figures", "--strategies", "lopti", "--learning-rate", "0.5", "--batches", "3", "--to", str(tmp_path)]
    assert main([str(file), "seed=1", *figures]) == 0
    found = json.loads((tmp_path / "figures.json").read_text())
    assert {row["strategy"] for row in found["rows"]} == {"grpo", "lopti"}
    assert (found["learning_rate"], found["groups"]) == (0.5, 12)
    assert "| 3 | `rose_share` | `grpo` |" in capsys.readouterr().out
    assert "frozen_move_by_rare" in (tmp_path / "figures.svg").read_text()
    assert not (tmp_path / "run").exists()
    assert main([str(tmp_path), "--strategies", "grpo"]) == 2  # no run's directory
    adapter = shutil.copytree(tiny_model, tmp_path / "adapter")
    (adapter / "config.json").rename(adapter / "adapter_config.json")
    assert main([str(file), "--weights", str(adapter)]) == 2
    assert "evenkeel export" in capsys.readouterr().err
