"""Compact generation gives transformers' own tokens, computes fewer rows, and says where it cannot be."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from transformers.integrations import sdpa_attention

from evenkeel.errors import Refusal
from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.run.callbacks.progress import samples
from evenkeel.trainer.step.generation import compact_generation
from tests.trainer.training import made, max_difference, ours

COMPACT = {"generation": "compact"}


def generated(model: Any, *, compact: bool, **wanted: Any) -> torch.Tensor:
    """Completions of eight prompts of up to six tokens, three of each: a model of 24 words ends one in 24 a token."""
    torch.manual_seed(3)
    prompts = torch.randint(5, 24, (8, 6)).repeat(3, 1)
    mask = (torch.arange(6) >= torch.tensor([0, 3, 5, 1, 2, 4, 0, 1] * 3)[:, None]).long()
    inputs = {"input_ids": (prompts * mask).to(model.device), "attention_mask": mask.to(model.device)}
    settings = {"do_sample": True, "max_new_tokens": 40, "pad_token_id": 0, "eos_token_id": [1], **wanted}
    if compact:
        with compact_generation(model):
            return model.generate(**inputs, **settings)
    return model.generate(**inputs, **settings)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"temperature": 0.7, "top_k": 9, "top_p": 0.9, "min_p": 0.01},
        {"repetition_penalty": 1.3, "min_new_tokens": 12},
        {"eos_token_id": [1, 7, 11]},
    ],
    ids=lambda wanted: "-".join(wanted) or "plain",
)
def test_the_tokens_are_transformers_own(model: Any, wanted: dict[str, Any]):
    plain, compact = (generated(model, compact=compact, **wanted) for compact in (False, True))
    assert torch.equal(plain, compact)


def test_equal_prompts_and_rows_that_have_ended_are_not_computed(model: Any):
    rows: list[int] = []
    handle = model.register_forward_hook(lambda *given: rows.append(len(given[2].logits)))
    written = generated(model, compact=True)[:, 6:]
    handle.remove()
    running = [8, *(24 - ((written == 1).cumsum(1) > 0).sum(0)).tolist()[:-1]]  # a prompt is read once
    assert len(rows) == len(running)
    assert running[-1] < 12  # else this shows nothing
    for computed, needed in zip(rows, running, strict=True):
        assert needed <= computed <= needed / 0.9 + 1


def test_heads_of_a_group_read_the_same_keys_also_where_training_recomputes(model: Any):
    own, replaced = sdpa_attention.use_gqa_in_sdpa, list[bool]()
    model.gradient_checkpointing_enable()
    handle = model.register_forward_hook(lambda *_: replaced.append(sdpa_attention.use_gqa_in_sdpa is not own))
    with compact_generation(model), torch.no_grad():
        model.generate(torch.full((2, 4), 7), max_new_tokens=2, pad_token_id=0)
    handle.remove()
    model.gradient_checkpointing_disable()
    assert replaced
    assert all(replaced)
    assert sdpa_attention.use_gqa_in_sdpa is own


def test_training_and_evaluation_are_the_same(tiny_model: Path, tmp_path: Path):
    peft = LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False)
    runs = []
    for name, strategies in (("plain", {}), ("compact", COMPACT)):
        torch.manual_seed(0)
        settings = {"strategies": strategies, "peft_config": peft, "max_completion_length": 24, "max_steps": 1}
        run = ours(tiny_model, tmp_path / name, **settings)
        torch.manual_seed(0)
        runs.append((run, [row["completion"] for row in samples(run._logs, 8)], run._generate(["a b"] * 6)[1]))
    assert max_difference(runs[0][0], runs[1][0]) < 1e-6
    assert runs[0][1:] == runs[1][1:]


def is_compact(model: Path, folder: Path, generation: str | None) -> bool:
    trainer = made(RLVRTrainer, model, folder, strategies={"generation": generation})
    return bool(trainer.parts.choices["generation"])


def test_it_is_taken_where_it_is_exact_and_not_switched_off(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert is_compact(tiny_model, tmp_path, None)
    monkeypatch.setenv("EVENKEEL_OFF", "microbatches, generation")
    assert not is_compact(tiny_model, tmp_path, None)
    monkeypatch.setenv("EVENKEEL_OFF", "compakt")
    with pytest.raises(Refusal, match="compakt") as refused:
        is_compact(tiny_model, tmp_path, None)
    assert refused.value.code == "unknown-switch"


def test_a_model_with_another_cache_is_generated_from_as_trl_does(tiny_model: Path, tmp_path: Path):
    sliding = AutoModelForCausalLM.from_pretrained(tiny_model)
    layers = {"layer_types": ["full_attention", "sliding_attention"]}
    sliding.config.update({**layers, "use_sliding_window": True, "sliding_window": 4})
    shutil.copytree(tiny_model, tmp_path, dirs_exist_ok=True)
    sliding.save_pretrained(tmp_path)
    assert not is_compact(tmp_path, tmp_path / "run", None)
    with pytest.warns(UserWarning, match="the model's cache is not"):
        assert not is_compact(tmp_path, tmp_path / "run", "compact")
