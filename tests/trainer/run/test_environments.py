"""Environments and tools from a run file: refused in words before a model is loaded, or trained to the end."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen3ForCausalLM

from evenkeel.trainer.command.train import main
from tests.scripts.test_train import write_run
from tests.tiny_model import tiny_config
from tests.trainer.step.test_environments import tool_calling_tokenizer

GAMES = [{"prompt": "Find a number from 1 to 7.", "reference": str(number)} for number in range(1, 8)]
SETTINGS: dict[str, Any] = {
    "data": {"train": {"path": "rows.jsonl"}, "test": {"path": "rows.jsonl", "max_rows": 3}},
    "environment": "guessing",
    "rewards": [{"verifier": "environment"}],
    "algorithm": {"prompts_per_rollout": 2, "sequences_per_update": 8},
}
TRL = {"per_device_train_batch_size": 8, "max_completion_length": 12, "max_steps": 1, "save_strategy": "no"}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with a tokenizer and a template that can call tools."""
    folder = tmp_path_factory.mktemp("callers") / "policy"
    tokenizer = tool_calling_tokenizer()
    torch.manual_seed(0)
    Qwen3ForCausalLM(tiny_config(vocab_size=len(tokenizer), num_hidden_layers=1)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy").symlink_to(policy)
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in GAMES))
    return tmp_path


def written(folder: Path, **changes: Any) -> str:
    trl = {**TRL, "chat_template_kwargs": {"enable_thinking": False}}
    return str(write_run(folder, Path("policy"), trl=trl, **{**SETTINGS, **changes}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"environment": "python_tool"}, "the run has none with get_reward"),
        ({"environment": None}, "the run has none with get_reward"),
        (
            {"rewards": [{"verifier": "exact_match"}]},
            "Guessing has a reward of its own, and no reward of the run asks for it",
        ),
        ({"model": {"name_or_path": "configs/tiny_policy/countdown"}}, "does not support tool calling"),
    ],
)
def test_what_cannot_act_is_refused_before_the_model_is_loaded(
    folder: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], said: str
):
    whole = (folder / "policy").resolve()
    (folder / "policy").unlink()
    shutil.copytree(whole, folder / "policy", ignore=shutil.ignore_patterns("*.safetensors"))
    assert main([written(folder, **changes)]) == 2
    assert said in capsys.readouterr().err


def test_environments_by_task(folder: Path, capsys: pytest.CaptureFixture[str]):
    """Rows of one task have an environment, and a column of their own that its reset is given."""
    rows = [
        {**row, "task": task, "draw": {"sum": 2 * int(row["reference"])}} for task in ("game", "sums") for row in GAMES
    ]
    for task in ("game", "sums"):
        own = [row for row in rows if row["task"] == task]
        (folder / f"{task}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in own))
    sources: Any = {task: {"path": f"{task}.jsonl", "task": task} for task in ("game", "sums")}
    sources["game"]["columns"] = {"environment": {"twice": "draw.sum"}}
    changes = {
        "data": {"train": sources, "test": sources},
        "environment": {"game": {"name": "tests.rewards.environments.parts:Doubled", "guesses": 2}},
        "tools": ["calculator"],
        "algorithm": {**SETTINGS["algorithm"], "advantage": "gigpo"},  # sums have no states
        "rewards": [{"verifier": "environment", "task": "game"}, {"verifier": "exact_match", "task": "sums"}],
    }
    assert main([written(folder, **changes)]) == 0
    logged = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    keys = {key for line in logged for key in line}
    assert {"environment/turns", "environment/calls", "environment/frac_failed", "tools/call_frequency"} <= keys
    failed = [value for line in logged for key, value in line.items() if key.endswith("environment/frac_failed")]
    assert {*failed} == {0.0}
    del sources["game"]["columns"]
    assert main([written(folder, **changes)]) == 2
    assert "argument: 'twice'" in capsys.readouterr().err
