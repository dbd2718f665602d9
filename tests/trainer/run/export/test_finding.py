"""Which checkpoint is exported, in which form its weights lie, and what the card takes from the run's files."""

import json
import re
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import grpo_config, load_config
from evenkeel.trainer.run.export.exporting import generation_config
from evenkeel.trainer.run.export.model_card import model_card
from evenkeel.trainer.run.export.policy import load_policy
from evenkeel.trainer.run.export.source import find_source
from tests.paths import ROOT
from tests.trainer.run.test_checkpoints import listed, saved

STATE = {"global_step": 20, "max_steps": 20}
SUMMARY = {
    "n_items": 256,
    "k": 4,
    "temperature": 0.7,
    "interval": "95 %, Wilson's score interval over items",
    "mean_tokens": 52.0,
    "by_group": {},
}


def checkpoint(run: Path, step: int, file: str = "model.safetensors") -> Path:
    folder = saved(run, step)
    (folder / "model.safetensors").rename(folder / file)
    state = {**STATE, "best_model_checkpoint": f"elsewhere/checkpoint-{step // 2}"}
    (folder / "trainer_state.json").write_text(json.dumps(state))
    return listed(folder)


def test_the_models_own_code_is_run_where_the_caller_says_so(run: Path) -> None:
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("trust_remote_code: false", "trust_remote_code: true"))
    with pytest.raises(Refusal, match="--trust-remote-code"):
        find_source(run, None)
    assert find_source(run, None, trusts_code=True).step == 20


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The directory of a run of the quickstart with two checkpoints and two evaluations, no weights in them."""
    run = tmp_path / "run"
    checkpoint(run, 10), checkpoint(run, 20)
    load_config(ROOT / "configs" / "quickstart.yaml").save_resolved(run / "config.yaml")
    record = {
        "world_size": 2,
        "data_fingerprints": {"train": "ab" * 32},
        "git_revision": "c0ffee",
        "git_diff": "secret = 1",
        "command": ["evenkeel", "train"],
        "packages": {"trl": "1.16.0", "torch": "2.13.0"},
        "model_files": {"model.safetensors": "cd" * 32},
        "own_code": {},
        "machine": {"gpus": ["Some GPU"], "cpu": "Some CPU"},
    }
    (run / "manifest.json").write_text(json.dumps(record))
    for step, value in ((0, 0.25), (20, 0.5)):
        folder = run / "evaluations" / "held"
        folder.mkdir(parents=True, exist_ok=True)
        estimate = {"value": value, "low": value - 0.06, "high": value + 0.06}
        (folder / f"step-{step:06d}.json").write_text(json.dumps({**SUMMARY, "step": step, "avg@4": estimate}))
    return run


def test_the_newest_good_checkpoint_is_taken_unless_another_is_named(run: Path):
    assert find_source(run, None).step == 20
    assert find_source(run, "10").step == 10
    assert find_source(run, "best").step == 10
    assert find_source(run / "checkpoint-10", None).step == 10
    (run / "checkpoint-20" / "model.safetensors").write_bytes(b"weight! " * 106 + b"--")
    assert find_source(run, None).step == 10
    with pytest.raises(Refusal, match="SHA-256 differs"):
        find_source(run, "20")


def test_what_the_run_leaves_to_trl_is_trls_in_the_exported_sampling(run: Path, tiny_model: Path):
    config = run / "config.yaml"
    config.write_text(re.sub("  max_completion_length: .*\n", "", config.read_text()))
    source = find_source(run, None)
    tokenizer, policy = AutoTokenizer.from_pretrained(tiny_model), AutoModelForCausalLM.from_pretrained(tiny_model)
    args = grpo_config(source.run.config, 1)
    assert generation_config(source, policy, tokenizer).max_new_tokens == args.max_completion_length


def test_the_policy_of_an_adapter_answers_with_it(run: Path, tiny_model: Path):
    trained = get_peft_model(AutoModelForCausalLM.from_pretrained(tiny_model), LoraConfig(init_lora_weights=False))
    folder = checkpoint(run, 30, "adapter_model.safetensors")
    trained.save_pretrained(folder)
    listed(folder)
    source, tokens = find_source(run, None), torch.arange(8)[None]
    source.record["model_files"] = {}
    with torch.no_grad():
        policies = trained, load_policy(source, str(tiny_model))
        answered, exported = (policy.eval()(tokens).logits for policy in policies)
        with trained.disable_adapter():
            assert not answered.allclose(trained(tokens).logits, atol=1e-2)
    torch.testing.assert_close(exported, answered)


def test_the_card_says_what_the_files_say_and_nothing_private(run: Path):
    record = {**json.loads((run / "manifest.json").read_text()), "code_was_changed": True}
    card = model_card(find_source(run, None), record, 2e-6, "float32")
    assert "| held | avg@4 | 256 | 0.250 [0.190, 0.310] | 0.500 [0.440, 0.560] |" in card
    assert "at most 2.0e-06" in card
    assert "c0ffee`, with uncommitted changes" in card
    assert "None" not in card
    assert "secret" not in card
    assert str(ROOT) not in card, "a path of the machine that trained it"
    not_measured = model_card(find_source(run, "10"), record, 0.0, "float32")
    assert "step 10 was not evaluated" in not_measured
