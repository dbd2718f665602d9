"""Weights that transformers saved fit the config.json beside them, whatever it renames, ties or fuses."""

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

from evenkeel.trainer.run.check.weights import compared, stored_weights

SMALL = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
EXPERTS = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LATENT = {"q_lora_rank": 8, "kv_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
KINDS: dict[str, dict[str, Any]] = {
    "llama": SMALL,
    "gemma3_text": {**SMALL, "head_dim": 8},
    "gpt2": {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4},
    "mixtral": {**SMALL, **EXPERTS, "num_key_value_heads": 2},
    "qwen3_moe": {**SMALL, **EXPERTS, "num_key_value_heads": 2},
    "deepseek_v3": {**SMALL, **EXPERTS, **LATENT, "n_routed_experts": 4, "n_group": 1, "topk_group": 1},
    "mamba": {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_saved_fits(kind: str, tmp_path: Path) -> None:
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **KINDS[kind]))
    model.save_pretrained(tmp_path, max_shard_size="40KB")
    stored = stored_weights(tmp_path)
    assert len(stored) > 5
    assert not any(compared(AutoConfig.from_pretrained(tmp_path), stored).values())


EDITS: list[tuple[str, dict[str, Any]]] = [
    ("llama", {"num_hidden_layers": 1}),
    ("llama", {"tie_word_embeddings": False, "architectures": ["GemmaForCausalLM"], "model_type": "gemma"}),
    ("mixtral", {"num_local_experts": 8, "num_experts": 8}),
    ("deepseek_v3", {"kv_lora_rank": 4}),
]
"""Written when the check was done, and run once."""


@pytest.mark.parametrize(("kind", "edit"), EDITS)
def test_what_was_edited_does_not_fit(kind: str, edit: dict[str, Any], tmp_path: Path) -> None:
    options = {key: value for key, value in edit.items() if key not in ("architectures", "model_type")}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **KINDS[kind]))
    model.save_pretrained(tmp_path)
    other = AutoConfig.for_model(edit.get("model_type", kind), **{**KINDS[kind], **options})
    other.architectures = edit.get("architectures", [type(model).__name__])
    assert any(compared(other, stored_weights(tmp_path)).values())


def test_the_base_model_without_its_head_fits_where_that_is_tied(tmp_path: Path) -> None:
    for tied in (True, False):
        settings = AutoConfig.for_model("llama", **SMALL, tie_word_embeddings=tied)
        AutoModel.from_config(settings).save_pretrained(tmp_path)
        settings.architectures = ["LlamaForCausalLM"]
        missing, *others = compared(settings, stored_weights(tmp_path)).values()
        assert (missing, others) == ([] if tied else ["lm_head.weight"], [[], []])
