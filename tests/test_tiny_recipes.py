"""The tiny policies are as good and as bad as their cards say, and the runs that fit a CPU train them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from evenkeel.trainer.run.check.check import checked
from evenkeel.trainer.run.config import load_config
from scripts.tiny_policy.make import accuracy, completions, played
from scripts.tiny_policy.tasks import TASKS
from tests.paths import ROOT

CONFIGS = ROOT / "configs"
RECIPES = sorted(CONFIGS.glob("*/*tiny_cpu.yaml"))
FOLDERS = CONFIGS / "tiny_policy"
of_each_policy = pytest.mark.parametrize("name", sorted(path.name for path in FOLDERS.iterdir() if path.is_dir()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["guessing", "key_door", "python_tool"])
def test_the_policy_of_the_games_calls_their_tools(kind: str) -> None:
    rounds = TASKS["games"]().held_out[kind][:32]
    assert not checked(CONFIGS / f"environments/{kind}_tiny_cpu.yaml", ["trl.use_cpu=true"], processes=None).errors
    folder = FOLDERS / "games"
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    said, _ = played(model, tokenizer, rounds, sample=True, seed=0, turns=1)
    answers = [conversation[2]["content"] for conversation in said if len(conversation) > 2]
    assert len(answers) >= 6
    assert not [answer for answer in answers if "error" in answer.lower()]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_it_trains(recipe: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evenkeel", "train", str(recipe), "trl.max_steps=2", "trl.save_steps=2"]
    command += [f"output_dir={tmp_path / 'run'}", "logging.report_to=none"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr[-3000:]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["optimizer_steps"] == 2
    assert 0.05 < summary["accuracy_before"] < 0.9
    entries = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    trained = [entry for entry in entries if "reward" in entry]
    assert len(trained) == 2
    for reward in load_config(recipe).rewards:
        assert all(0 < entry[f"verifier/{reward.label}/accuracy"] < 1 for entry in trained)
        assert all(entry[f"verifier/{reward.label}/frac_unscored"] == 0 for entry in trained)


LARGEST = 6_000_000  # bytes, of all folders together


@of_each_policy
def test_small_and_with_its_card(name: str) -> None:
    assert sum(file.stat().st_size for file in FOLDERS.rglob("*") if file.is_file()) <= LARGEST
    card = (FOLDERS / name / "README.md").read_text(encoding="utf-8")
    assert f"python -m scripts.tiny_policy.make {name} --output configs/tiny_policy/{name}" in card
    assert "--seed" in card


@pytest.mark.slow
@of_each_policy
def test_sampled_it_leaves_something_to_learn(name: str) -> None:
    task = TASKS[name]()
    tokenizer = AutoTokenizer.from_pretrained(FOLDERS / name)
    model = AutoModelForCausalLM.from_pretrained(FOLDERS / name)
    for several in task.held_out.values():
        if task.calls_tools:
            _, scores = played(model, tokenizer, several[:64], sample=True, seed=0)
            assert 0.03 < sum(scores) / len(scores) < 0.8
            continue
        texts = completions(model, tokenizer, several[:64], sample=True, seed=0)
        assert 0.2 < accuracy(several[:64], texts) < 0.8
