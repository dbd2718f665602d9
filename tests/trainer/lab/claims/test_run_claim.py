"""A claim, from nothing to its certificate: real cells, stopped and gone on with."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenkeel.trainer.run.config.yaml_document import write
from tests.paths import ROOT

SHORT = {
    "trl.max_steps": 2,
    "trl.num_generations": 4,
    "trl.max_completion_length": 48,
    "algorithm.prompts_per_rollout": 4,
    "algorithm.sequences_per_update": 16,
    "data.test.generator.test": 32,
    "logging.report_to": "none",
}


@pytest.mark.slow
def test_a_claim_is_run_answered_and_verified(tmp_path: Path):
    variants = {"grpo": SHORT, "inverted": {**SHORT, "rewards.0.noise": {"false_positive": 1.0, "false_negative": 1.0}}}
    sweep = {
        "config": str(ROOT / "configs/quickstart.yaml"),
        "baseline": "grpo",
        "seeds": [0, 1, 2],
        "variants": variants,
    }
    claim = {"claim": "Inverted rewards harm.", "source": "control", "sweep": "sweep.yaml"}
    claim |= {"variant": "inverted", "against": ["grpo"], "direction": "worse", "matters": 0.02}
    (tmp_path / "inverted.yaml").write_text(write(claim))
    sweep |= {"name": "inverted", "executor": {"parallel": 2}}
    (tmp_path / "sweep.yaml").write_text(write(sweep))

    def evenkeel(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "evenkeel", "claim", *arguments]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "OMP_NUM_THREADS": "1"}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)

    ran = evenkeel("inverted.yaml")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    content = json.loads((tmp_path / "inverted.certificate.json").read_text())
    assert content["cost"]["cells"] == 6
    assert content["cost"]["core_hours"] > 0
    assert any("model.safetensors" in name for name in content["data"])
    lines = (tmp_path / "runs/sweeps/inverted/inverted-s0/run/metrics.jsonl").read_text().splitlines()
    assert any(json.loads(line).get("verifier/countdown/false_positive") == 1.0 for line in lines)
    again = evenkeel("inverted.yaml")
    assert again.returncode == 0
    assert json.loads((tmp_path / "inverted.certificate.json").read_text()) == content
    assert evenkeel("--verify", "inverted.certificate.json").returncode == 0
    with (tmp_path / "runs/sweeps/inverted/grpo-s1/run/metrics.jsonl").open("a") as file:
        file.write(" ")
    changed = evenkeel("--verify", "inverted.certificate.json")
    assert changed.returncode == 1
    assert changed.stdout == "results: runs/sweeps/inverted/grpo-s1/run/metrics.jsonl: changed\n"
