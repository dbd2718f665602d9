"""Every rule on settings: what breaks it and what just does not; none is without a test."""

import math
import re
from typing import Any

import pytest
import torch

from evenkeel.trainer.algorithms.engine_ratio import engine_ratio
from evenkeel.trainer.run.config.rules import RULES, Given, conflicts, rules_broken


def kebab(name: str) -> str:
    return name.replace("_", "-")


def trl(**arguments: Any) -> Given:
    return Given({"trl": arguments})


def kwargs(**arguments: Any) -> Given:
    return trl(generation_kwargs=arguments)


def batch(trl: dict[str, Any], **words: int) -> Given:
    return Given({"trl": trl, "algorithm": words})


COLOCATED, SERVED = {"use_vllm": True, "vllm_mode": "colocate"}, {"use_vllm": True, "vllm_mode": "server"}
TRUNCATES = {**SERVED, "vllm_importance_sampling_mode": "token_truncate", "vllm_importance_sampling_clip_max": None}
OF_A_SERVER = ("server_base_url", "server_host", "server_port", "server_timeout", "group_port")
OF_COLOCATION = (
    "gpu_memory_utilization",
    "max_model_length",
    "tensor_parallel_size",
    "enable_sleep_mode",
    "model_impl",
)
BOTH_WORDS = {"prompts_per_rollout": 4, "sequences_per_update": 8}
CUT = ("generation_batch_size", "steps_per_generation", "gradient_accumulation_steps")

BROKEN_AND_KEPT: dict[str, tuple[Given, Given]] = {
    "one-token-top-k": (trl(top_k=1), trl(top_k=2)),
    "one-token-temperature": (trl(temperature=0.009), trl(temperature=0.01)),
    "one-token-top-p": (trl(top_p=0.049), trl(top_p=0.05)),
    "one-token-min-p": (trl(min_p=1.0), trl(min_p=0.9)),
    "generation-kwargs-overrule": (kwargs(max_length=9), kwargs(renormalize_logits=True)),
    "generation-kwargs-greedy": (kwargs(do_sample=False), kwargs(do_sample=True)),
    "generation-kwargs-several": (kwargs(num_beams=2), kwargs(num_beams=1)),
    "epsilon-high-below-epsilon": (trl(epsilon_high=0.19), trl(epsilon_high=0.2)),
    "delta-inside-the-clip": (trl(delta=1.2), trl(delta=1.21)),
    "warmup-of-a-fraction": (trl(warmup_steps=1.5), trl(warmup_steps=0.5)),
    "output-dir-without-a-name": (Given({"output_dir": "/"}), Given({"output_dir": "/runs"})),
    "environment-reward-without-one": (
        Given({"rewards": [{"verifier": "math_answer"}, {"verifier": {"name": "environment"}}]}),
        Given({"rewards": [{"verifier": "environment"}], "environment": "guessing"}),
    ),
    "best-model-of-no-metric": (
        trl(load_best_model_at_end=True),
        Given({"trl": {"load_best_model_at_end": True}, "evaluation": {"keep_best": "eval/test/avg@1"}}),
    ),
    "evaluation-without-rows": (
        Given({"evaluation": {"every_steps": 5}, "data": {}}),
        Given({"evaluation": {"every_steps": 5}, "data": {"test": {}}}),
    ),
    "lora-task-type": (
        Given({"model": {"lora": {"task_type": "SEQ_CLS"}}}),
        Given({"model": {"lora": {"task_type": "CAUSAL_LM"}}}),
    ),
    "float16-without-a-scaler": (
        Given({"model": {"dtype": "float16"}}),
        Given({"model": {"dtype": "float16", "lora": {"r": 4}}}),
    ),
    "seed-twice": (Given({"seed": 1, "trl": {"seed": 1}}), Given({"seed": None, "trl": {"seed": 1}})),
    "vllm-section-without-vllm": (Given({"vllm": {}}), Given({"vllm": {}, "trl": {"use_vllm": True}})),
    **{
        f"vllm-{kebab(name)}-while-{mode}": (trl(**this, **{f"vllm_{name}": 1}), trl(**other, **{f"vllm_{name}": 1}))
        for mode, this, other, names in (
            ("colocate", COLOCATED, SERVED, OF_A_SERVER),
            ("server", SERVED, COLOCATED, OF_COLOCATION),
        )
        for name in names
    },
    "vllm-takes-the-gpu": (
        trl(use_vllm=True, vllm_gpu_memory_utilization=0.91),  # colocate is TRL's default
        trl(**COLOCATED, vllm_gpu_memory_utilization=0.9),
    ),
    "nothing-to-truncate-to": (trl(**TRUNCATES), trl(**TRUNCATES, vllm_importance_sampling_clip_min=0.1)),
    "prompts-per-rollout-alone": (batch({}, prompts_per_rollout=4), batch({}, **BOTH_WORDS)),
    "sequences-per-update-alone": (batch({}, sequences_per_update=4), batch({}, **BOTH_WORDS)),
    **{f"{kebab(name)}-beside-algorithm": (batch({name: 1}, **BOTH_WORDS), batch({name: 1})) for name in CUT},
    "correction-of-long-responses": (
        trl(use_vllm=True, max_completion_length=500),  # sequence_mask and 3.0 are TRL's defaults
        trl(use_vllm=True, max_completion_length=300),
    ),
    "vllm-without-vllm": (trl(vllm_mode="server"), trl(vllm_mode="server", use_vllm=True)),
    "epochs-beside-steps": (trl(num_train_epochs=2, max_steps=5), trl(num_train_epochs=2)),
    "adaptive-entropy": (trl(entropy_target=0.5), trl(entropy_target=0.5, use_adaptive_entropy=True)),
    "reference-sync": (trl(ref_model_sync_steps=5), trl(ref_model_sync_steps=5, sync_ref_model=True)),
    "saving": (trl(save_steps=5, save_strategy="no"), trl(save_steps=5)),
    "sapo": (trl(sapo_temperature_neg=1.0), trl(sapo_temperature_neg=1.0, loss_type="sapo")),
    "vespo": (trl(vespo_k_pos=1.0), trl(vespo_k_pos=1.0, loss_type="vespo")),
    "delta": (trl(delta=4.0, loss_type="sapo"), trl(delta=4.0, loss_type="grpo")),
    "do-train": (trl(do_train=False), trl(do_train=None)),
    "tool-calls-without-tools": (
        trl(max_tool_calling_iterations=3),
        Given({"trl": {"max_tool_calling_iterations": 3}, "tools": ["python_tool"]}),
    ),
    "revision-of-a-folder": (
        Given({"model": {"name_or_path": "/", "revision": "main"}}),
        Given({"model": {"name_or_path": "somebody/model", "revision": "main"}}),
    ),
    "heavy-token-weights": (
        Given({"algorithm": {"token_weight": "x"}}, heaviest_token_weight=1001.0),
        Given({"algorithm": {"token_weight": "x"}}, heaviest_token_weight=1000.0),
    ),
    "coefficient-under-rounding": (
        Given({"algorithm": {"coefficient": "x"}}, coefficient_under_rounding=0.94),
        Given({"algorithm": {"coefficient": "x"}}, coefficient_under_rounding=1.04),
    ),
}


def test_no_rule_is_without_a_test_and_none_stands_twice():
    assert sorted(rule.code for rule in RULES) == sorted(BROKEN_AND_KEPT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_is_broken_and_kept(rule: Any):
    broken, kept = BROKEN_AND_KEPT[rule.code]
    ((found, what, instead),) = rules_broken([rule], broken)
    assert found is rule
    assert what.endswith(".")
    assert instead.endswith(".")
    assert list(rules_broken([rule], kept)) == []
    assert list(rules_broken([rule], Given({}))) == []


def test_a_value_of_another_type_breaks_no_rule_and_ends_in_no_traceback():
    for rule in RULES:
        for path in rule.settings:
            for value in ("x", [1], {"a": 1}, True, None):
                section, _, key = path.rpartition(".")
                inner: Any = {key: value}
                for part in reversed(section.split(".") if section else []):
                    inner = {part: inner}
                list(rules_broken([rule], Given(inner)))


def test_clips_of_losses_that_have_none_are_left_alone():
    """CISPO's epsilon_high is the cap of the ratio itself, and a coefficient replaces it."""
    assert list(rules_broken(RULES, trl(epsilon_high=0.1, loss_type="cispo"))) == []
    given = Given({"trl": {"epsilon_high": 0.1}, "algorithm": {"coefficient": "topr"}})
    assert list(rules_broken(RULES, given)) == []


def test_data_of_another_type_says_nothing_about_held_out_rows():
    run = {"evaluation": {"every_steps": 5}}
    assert [list(rules_broken(RULES, Given({**run, "data": data}))) for data in (True, [], "x")] == [[], [], []]
    assert len(list(rules_broken(RULES, Given({**run, "data": {"test": None}})))) == 1


def test_what_is_read_to_evaluate_alone_may_sample_as_it_likes():
    run = {"trl": {"top_k": 1}}
    assert len(list(conflicts(run))) == 1
    assert list(conflicts(run, trains=False)) == []


LONG = {"use_vllm": True, "max_completion_length": 4096, "vllm_importance_sampling_mode": "sequence_truncate"}


def test_what_a_bound_leaves_of_a_response_is_what_the_correction_leaves_of_simulated_ones():
    """log ρ of each token normal with 0.03 around −0.03²/2; 20,000 responses of 4,096 tokens at once."""
    draws = torch.Generator().manual_seed(0)
    total = 0.03 * math.sqrt(4096) * torch.randn(20_000, 1, generator=draws) - 0.03**2 / 2 * 4096
    one = torch.ones(20_000, 1, dtype=torch.long)
    for mode in ("sequence_mask", "sequence_truncate"):
        left = engine_ratio(total, torch.zeros_like(total), one, mode, None, 3.0).mean().item()
        ((_, what, instead),) = rules_broken(RULES, trl(**LONG | {"vllm_importance_sampling_mode": mode}))
        (said,) = re.findall(r"are (\d+)% of the gradient", what)
        assert int(said) == pytest.approx(100 * left, abs=2)
        assert f"Write vllm_importance_sampling_mode: {mode.replace('sequence', 'token')}" in instead


@pytest.mark.parametrize(
    "changed",
    [
        {"use_vllm": False},
        {"bf16": False},
        {"vllm_importance_sampling_correction": False},
        {"vllm_importance_sampling_mode": "token_mask"},
        {"vllm_importance_sampling_mode": "sequence_mask", "vllm_importance_sampling_clip_max": None},
        {"vllm_importance_sampling_clip_min": 0.5},
        {"max_completion_length": "long"},
    ],
    ids=str,
)
def test_no_correction_is_warned_of_that_leaves_the_gradient_whole(changed: dict[str, Any]):
    found = [each.code for each, *_ in rules_broken(RULES, trl(**LONG | changed))]
    assert "correction-of-long-responses" not in found
