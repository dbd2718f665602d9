"""evenkeel evaluate as its users run it: numbers and files of a real tiny model, refusals, files that ship."""

from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from ruamel.yaml import YAML

from evenkeel.rewards import build_verifier
from evenkeel.trainer.command.evaluate import main
from evenkeel.trainer.run.config import evaluation_arguments, load_config
from tests.scripts.test_train import ROOT, SETTINGS

CONFIGS = sorted((ROOT / "configs" / "evaluation").glob("*.yaml"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Eleven countdown problems, two samples and the greedy completion."""
    settings = {
        "data": {"test": {"generator": {"name": "countdown", "part": "test", "train": 0, "test": 11, "seed": 0}}},
        "rewards": SETTINGS["rewards"],
        "trl": {"max_completion_length": 8},
        "evaluation": {"batch_size": 4, "samples": 2, "greedy": True, "temperature": 0.9},
    }
    path = tmp_path / "evaluation.yaml"
    YAML(typ="safe").dump(settings, path)
    return path


def records(folder: Path, name: str = "test", step: int = 0) -> list[dict[str, Any]]:
    return parquet.read_table(folder / name / f"step-{step:06d}.parquet").to_pylist()


@pytest.mark.slow
def test_an_adapter_is_merged_into_its_model(tiny_model: Path, file: Path, tmp_path: Path):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(1)
    policy = get_peft_model(
        AutoModelForCausalLM.from_pretrained(tiny_model),
        LoraConfig(r=8, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM"),
    )
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    policy.save_pretrained(tmp_path / "adapter")
    policy.merge_and_unload().save_pretrained(tmp_path / "merged")
    for name in ("adapter", "merged"):
        tokenizer.save_pretrained(tmp_path / name)
        assert main([str(tmp_path / name), str(file), "--output", str(tmp_path / f"{name}-result")]) == 0
    assert main([str(tiny_model), str(file), "--output", str(tmp_path / "base-result")]) == 0
    texts = {
        name: [row["completion"] for row in records(tmp_path / f"{name}-result") if row["greedy"]]
        for name in ("adapter", "merged", "base")
    }
    assert texts["adapter"] == texts["merged"] != texts["base"]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_file_that_ships_passes_every_check_that_needs_no_data(path: Path, tmp_path: Path):
    config = load_config(path, ["model.name_or_path=x"], evaluation_only=True)
    for reward in config.rewards:
        build_verifier(reward.verifier)
    args = evaluation_arguments(config, str(tmp_path))
    assert args.max_completion_length >= 1024
    assert config.evaluation.samples or config.evaluation.greedy
