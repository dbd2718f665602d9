"""A rehearsal finds what a library refuses, at the key that it is about, and runs whatever shape a model has."""

from pathlib import Path

import pytest
from transformers import AutoConfig

from evenkeel.trainer.run.check.check import checked
from evenkeel.trainer.run.check.rehearsal import save_small_model
from tests.trainer.run.check.mistakes.workshop import make_workshop


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workshop(tmp_path_factory.mktemp("workshop"))


LARGE = {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 40, "vocab_size": 1000}


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("llama", {"num_key_value_heads": 8, "intermediate_size": 16384}),
        ("qwen2", {"num_key_value_heads": 8, "intermediate_size": 16384, "use_sliding_window": True}),
        ("gemma3_text", {"num_key_value_heads": 8, "intermediate_size": 16384, "head_dim": 256}),
        ("qwen3_moe", {"num_key_value_heads": 8, "moe_intermediate_size": 768, "num_experts": 8}),
        ("gpt2", {}),
    ],
)
def test_a_large_model_becomes_a_small_one_of_its_kind(kind: str, more: dict[str, object], tmp_path: Path):
    settings = AutoConfig.for_model(kind, **LARGE, **more)
    settings.architectures = [
        {
            "llama": "LlamaForCausalLM",
            "qwen2": "Qwen2ForCausalLM",
            "gemma3_text": "Gemma3ForCausalLM",
            "qwen3_moe": "Qwen3MoeForCausalLM",
            "gpt2": "GPT2LMHeadModel",
        }[kind]
    ]
    if kind == "gpt2":
        settings.n_embd, settings.n_head = 64, 4  # it has no narrower form
    assert save_small_model(settings, tmp_path / "model") == tmp_path / "model"
    small = AutoConfig.from_pretrained(tmp_path / "model")
    assert (small.num_hidden_layers, small.vocab_size, small.model_type) == (2, 1000, kind)
    assert (tmp_path / "model" / "model.safetensors").stat().st_size < 150e6
    assert settings.num_hidden_layers == 40


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("model.lora={r: 4, target_modules: [q_prj]}", "model.lora.target_modules"),
        ("trl.lr_scheduler_type=cosine_with_min_lr", "trl.lr_scheduler_type"),
        ("trl.optim_args=wide", "trl.optim_args"),
        ("algorithm.advantage=gigpo", "algorithm.advantage: advantage 'gigpo' asks for the column 'turn_rewards'"),
    ],
)
def test_what_a_library_refuses_is_found_with_its_key_and_leaves_nothing_behind(
    workshop: Path, tmp_path: Path, override: str, key: str
):
    run = [str(workshop / "run.yaml"), override, f"output_dir={tmp_path / 'run'}"]
    (finding,) = checked(run[0], run[1:], processes=None).errors
    assert key in str(finding)
    assert str(finding).startswith("command line: ")
    assert not (tmp_path / "run").exists()
