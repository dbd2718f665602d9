"""evenkeel export on runs that were trained a moment ago: what comes out answers as the trainer did."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from pyarrow import parquet
from ruamel.yaml import YAML
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from evenkeel.trainer.command.export import main
from evenkeel.trainer.command.train import main as train
from tests.paths import ROOT

COUNTDOWN = {"name": "countdown", "train": 1024, "test": 16, "seed": 1, "max_number": 12, "max_target": 50}
LORA = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Trains the shipped policy for three steps at a high learning rate, whole or under an adapter, once each."""
    folder = tmp_path_factory.mktemp("runs")

    def run(name: str, **model: Any) -> Path:
        if not (folder / name).exists():
            (folder / f"{name}.yaml").write_text("")
            settings = YAML(typ="safe").load(ROOT / "configs" / "quickstart.yaml")
            settings |= {"name": name, "output_dir": str(folder / name), "logging": {"report_to": "none"}}
            settings["model"] = {"name_or_path": str(ROOT / "configs" / "tiny_policy" / "countdown"), **model}
            settings["data"] = {part: {"generator": {**COUNTDOWN, "part": part}} for part in ("train", "test")}
            settings["algorithm"] = {"prompts_per_rollout": 4, "sequences_per_update": 32}
            settings["trl"] |= {"per_device_train_batch_size": 32, "max_steps": 3, "save_steps": 2, "warmup_steps": 0}
            settings["trl"] |= {"max_completion_length": 48, "learning_rate": 1e-3, "top_k": 30}
            settings["evaluation"] = {"batch_size": 16, "before": True, "samples": 2, "greedy": True}
            YAML(typ="safe").dump(settings, folder / f"{name}.yaml")
            assert train([str(folder / f"{name}.yaml")]) == 0
        return folder / name

    return run


def greedy_answers(run: Path) -> dict[str, str]:
    """Prompt → the trainer's own greedy completion at the last step."""
    file = max((run / "evaluations" / "test").glob("*.parquet"))
    rows = parquet.read_table(file).to_pylist()
    return {row["prompt"]: row["completion"] for row in rows if row["greedy"]}


def plain_answers(folder: Path, prompts: list[str]) -> dict[str, str]:
    """What a user of transformers gets who has never heard of this project."""
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    answers = {}
    for prompt in prompts:
        conversation, options = [{"role": "user", "content": prompt}], {"return_dict": True, "return_tensors": "pt"}
        batch = tokenizer.apply_chat_template(conversation, add_generation_prompt=True, **options)
        tokens = model.generate(**batch, do_sample=False)[0, batch["input_ids"].shape[1] :]
        answers[prompt] = tokenizer.decode(tokens, skip_special_tokens=True)
    return answers


@pytest.mark.slow
@pytest.mark.parametrize("model", [{}, {"lora": LORA}], ids=["full", "lora"])
def test_plain_transformers_answers_as_the_trainer_did(
    trained: Any, tmp_path: Path, capsys: Any, model: dict[str, Any]
):
    run, to = trained("lora" if model else "full", **model), tmp_path / "out"
    assert main([str(run), "--to", str(to)]) == 0
    assert "differ from the run's policy by at most" in capsys.readouterr().out
    said = greedy_answers(run)
    assert len(said) == 16
    assert plain_answers(to, [*said]) == said
    base = ROOT / "configs" / "tiny_policy" / "countdown"
    assert plain_answers(base, [*said]) != said, "training changed no answer, so the comparison says nothing"

    generation = json.loads((to / "generation_config.json").read_text())
    assert (generation["do_sample"], generation["top_k"], generation["max_new_tokens"]) == (True, 30, 48)
    assert {"model.safetensors", "tokenizer.json", "chat_template.jinja", "README.md"} <= {p.name for p in to.iterdir()}
    assert "lora" not in " ".join(load_file(to / "model.safetensors"))
    card = (to / "README.md").read_text()
    measured = json.loads(max((run / "evaluations" / "test").glob("*.json")).read_text())["greedy"]
    assert f"{measured['value']:.3f} [{measured['low']:.3f}, {measured['high']:.3f}] |" in card
    record = json.loads((to / "training_manifest.json").read_text())
    assert record["optimizer_steps"] == 3
    assert "git_diff" not in record
    assert not (run / "README.md").exists(), "TRL's card, which knows nothing of the run"

    assert main([str(run), "--to", str(to)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.slow
def test_an_adapter_is_merged_into_no_other_weights(trained: Any, tmp_path: Path, capsys: Any):
    run = trained("lora", lora=LORA)
    other = tmp_path / "other"
    shutil.copytree(ROOT / "configs" / "tiny_policy" / "countdown", other)
    weights = load_file(other / "model.safetensors")
    save_file({name: tensor + 1e-2 for name, tensor in weights.items()}, other / "model.safetensors", {"format": "pt"})
    assert main([str(run), "--base", str(other), "--to", str(tmp_path / "out")]) == 2
    assert "holds other weights" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    moved = tmp_path / "moved"
    shutil.copytree(ROOT / "configs" / "tiny_policy" / "countdown", moved)
    assert main([str(run), "--base", str(moved), "--to", str(tmp_path / "out")]) == 0


@pytest.mark.slow
def test_a_policy_that_answers_otherwise_is_not_handed_out(trained: Any, tmp_path: Path, monkeypatch: Any, capsys: Any):
    """The comparison can fail: here the weights are changed between merging and writing."""
    from evenkeel.trainer.run.export import exporting

    def spoilt(policy: Any, dtype: str | None) -> Any:
        with torch.no_grad():
            policy.get_input_embeddings().weight.add_(0.05)
        return policy

    monkeypatch.setattr(exporting, "merged", spoilt)
    assert main([str(trained("full")), "--to", str(tmp_path / "out")]) == 2
    assert "does not answer as the policy of the run" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed: the extra qlora")
def test_of_qlora_the_dequantized_weights_are_merged(trained: Any, tmp_path: Path, capsys: Any):
    """Merged into the original weights instead, the adapter is another policy: its log-probabilities are far off."""
    run = trained("qlora", lora=LORA, quantization={"load_in_4bit": True})
    assert main([str(run), "--to", str(tmp_path / "out")]) == 0
    assert "differ from the run's policy by at most" in capsys.readouterr().out
    said = greedy_answers(run)
    answers = plain_answers(tmp_path / "out", [*said])
    assert sum(answers[prompt] == said[prompt] for prompt in said) >= len(said) - 2  # 4-bit products are in bfloat16
