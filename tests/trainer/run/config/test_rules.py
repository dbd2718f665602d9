"""Every rule on settings: what breaks it and what just does not; none is without a test."""

from typing import Any

import pytest

from trainer.run.config.conflicts import conflicts
from trainer.run.config.rules import (
    FILE_RULES,
    PART_RULES,
    SECTION_RULES,
    START_RULES,
    WITHOUT_EFFECT,
    Given,
    rules_broken,
)

RULES = (*FILE_RULES, *SECTION_RULES, *WITHOUT_EFFECT, *START_RULES, *PART_RULES)
WANDB = {"report_to": ["wandb"]}


def trl(**arguments: Any) -> Given:
    return Given({"trl": arguments})


def kwargs(**arguments: Any) -> Given:
    return trl(generation_kwargs=arguments)


def env(section: dict[str, Any], **environment: str) -> Given:
    return Given({"name": "run", "logging": section}, environment)


def batch(trl: dict[str, Any], **words: int) -> Given:
    return Given({"trl": trl, "algorithm": words})


def common(speed: dict[str, Any], **arguments: Any) -> Given:
    return Given({"common_random_numbers": True, "speed": speed, "trl": arguments})


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
    "one_token_top_k": (trl(top_k=1), trl(top_k=2)),
    "one_token_temperature": (trl(temperature=0.009), trl(temperature=0.01)),
    "one_token_top_p": (trl(top_p=0.049), trl(top_p=0.05)),
    "one_token_min_p": (trl(min_p=1.0), trl(min_p=0.9)),
    "generation_kwargs_overrule": (kwargs(max_length=9), kwargs(renormalize_logits=True)),
    "generation_kwargs_greedy": (kwargs(do_sample=False), kwargs(do_sample=True)),
    "generation_kwargs_several": (kwargs(num_beams=2), kwargs(num_beams=1)),
    "epsilon_high_below_epsilon": (trl(epsilon_high=0.19), trl(epsilon_high=0.2)),
    "delta_inside_the_clip": (trl(delta=1.2), trl(delta=1.21)),
    "warmup_of_a_fraction": (trl(warmup_steps=1.5), trl(warmup_steps=0.5)),
    "output_dir_without_a_name": (Given({"output_dir": "/"}), Given({"output_dir": "/runs"})),
    "reference_sync_without_reference": (trl(sync_ref_model=True), trl(sync_ref_model=True, beta=0.1)),
    "best_model_of_no_metric": (
        trl(load_best_model_at_end=True),
        Given({"trl": {"load_best_model_at_end": True}, "evaluation": {"keep_best": "eval/test/avg@1"}}),
    ),
    "evaluation_without_rows": (
        Given({"evaluation": {"every_steps": 5}}),
        Given({"evaluation": {"every_steps": 5}, "data": {"test": {}}}),
    ),
    "skipped_scoring_without_planning": (
        Given({"speed": {"skip_old_logps": True, "microbatches": "trl"}}),
        Given({"speed": {"skip_old_logps": True}}),
    ),
    "lora_task_type": (
        Given({"model": {"lora": {"task_type": "SEQ_CLS"}}}),
        Given({"model": {"lora": {"task_type": "CAUSAL_LM"}}}),
    ),
    "float16_without_a_scaler": (
        Given({"model": {"dtype": "float16"}}),
        Given({"model": {"dtype": "float16", "lora": {"r": 4}}}),
    ),
    "seed_twice": (Given({"seed": 1, "trl": {"seed": 1}}), Given({"seed": None, "trl": {"seed": 1}})),
    "vllm_section_without_vllm": (Given({"vllm": {}}), Given({"vllm": {}, "trl": {"use_vllm": True}})),
    **{
        f"vllm_{name}_while_colocate": (trl(**COLOCATED, **{f"vllm_{name}": 1}), trl(**SERVED, **{f"vllm_{name}": 1}))
        for name in OF_A_SERVER
    },
    **{
        f"vllm_{name}_while_server": (trl(**SERVED, **{f"vllm_{name}": 1}), trl(**COLOCATED, **{f"vllm_{name}": 1}))
        for name in OF_COLOCATION
    },
    "vllm_takes_the_gpu": (
        trl(use_vllm=True, vllm_gpu_memory_utilization=0.91),  # colocate is TRL's default
        trl(**COLOCATED, vllm_gpu_memory_utilization=0.9),
    ),
    "nothing_to_truncate_to": (trl(**TRUNCATES), trl(**TRUNCATES, vllm_importance_sampling_clip_min=0.1)),
    "common_noise_with_vllm": (common({"generation": "compact"}, use_vllm=True), common({"generation": "compact"})),
    "common_noise_without_compact": (common({}), common({"generation": "compact"})),
    "prompts_per_rollout_alone": (batch({}, prompts_per_rollout=4), batch({}, **BOTH_WORDS)),
    "sequences_per_update_alone": (batch({}, sequences_per_update=4), batch({}, **BOTH_WORDS)),
    **{f"{name}_beside_batch_words": (batch({name: 1}, **BOTH_WORDS), batch({name: 1})) for name in CUT},
    "vllm_without_vllm": (trl(vllm_mode="server"), trl(vllm_mode="server", use_vllm=True)),
    "epochs_beside_steps": (trl(num_train_epochs=2, max_steps=5), trl(num_train_epochs=2)),
    "adaptive_entropy": (trl(entropy_target=0.5), trl(entropy_target=0.5, use_adaptive_entropy=True)),
    "reference_sync": (trl(ref_model_sync_steps=5), trl(ref_model_sync_steps=5, sync_ref_model=True)),
    "saving": (trl(save_steps=5, save_strategy="no"), trl(save_steps=5)),
    "sapo": (trl(sapo_temperature_neg=1.0), trl(sapo_temperature_neg=1.0, loss_type="sapo")),
    "vespo": (trl(vespo_k_pos=1.0), trl(vespo_k_pos=1.0, loss_type="vespo")),
    "delta": (trl(delta=4.0, loss_type="sapo"), trl(delta=4.0, loss_type="grpo")),
    "wandb_names": (env({"entity": "e"}), env({**WANDB, "entity": "e"})),
    "environment_wandb_name": (env(WANDB, WANDB_NAME="x"), env({"report_to": "none"}, WANDB_NAME="x")),
    "environment_wandb_disabled": (env(WANDB, WANDB_DISABLED="true"), env(WANDB, WANDB_DISABLED="")),
    "environment_wandb_mode": (
        env({**WANDB, "wandb_mode": "online"}, WANDB_MODE="offline"),
        env(WANDB, WANDB_MODE="offline"),
    ),
    "environment_wandb_project": (
        env({**WANDB, "project": "a"}, WANDB_PROJECT="b"),
        env({**WANDB, "project": "a"}, WANDB_PROJECT="a"),
    ),
    "environment_wandb_entity": (env({**WANDB, "entity": "a"}, WANDB_ENTITY="b"), env(WANDB, WANDB_ENTITY="b")),
    "environment_wandb_run_group": (env({**WANDB, "group": "a"}, WANDB_RUN_GROUP="b"), env(WANDB, WANDB_RUN_GROUP="b")),
    "environment_wandb_tags": (
        env({**WANDB, "tags": ["a"]}, WANDB_TAGS="b"),
        env({**WANDB, "tags": ["a"]}, WANDB_TAGS="sweep,a"),
    ),
    "heavy_token_weights": (
        Given({"algorithm": {"token_weight": "x"}}, heaviest_token_weight=1001.0),
        Given({"algorithm": {"token_weight": "x"}}, heaviest_token_weight=1000.0),
    ),
}


def test_no_rule_is_without_a_test_and_none_stands_twice():
    assert sorted(rule.code for rule in RULES) == sorted(BROKEN_AND_KEPT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_is_broken_and_kept(rule: Any):
    broken, kept = BROKEN_AND_KEPT[rule.code]
    ((found, what, instead),) = rules_broken((rule,), broken)
    assert found is rule
    assert what.endswith(".")
    assert instead.endswith(".")
    assert list(rules_broken((rule,), kept)) == []
    assert list(rules_broken((rule,), Given({}))) == []


def test_a_value_of_another_type_breaks_no_rule_and_ends_in_no_traceback():
    for rule in RULES:
        for path in rule.settings:
            for value in ("x", [1], {"a": 1}, True, None):
                section, _, key = path.rpartition(".")
                inner: Any = {key: value}
                for part in reversed(section.split(".") if section else []):
                    inner = {part: inner}
                list(rules_broken((rule,), Given(inner)))


def test_clips_of_losses_that_have_none_are_left_alone():
    """CISPO's epsilon_high is the cap of the ratio itself, and a coefficient replaces it."""
    assert list(rules_broken(FILE_RULES, trl(epsilon_high=0.1, loss_type="cispo"))) == []
    given = Given({"trl": {"epsilon_high": 0.1}, "algorithm": {"coefficient": "topr"}})
    assert list(rules_broken(FILE_RULES, given)) == []


def test_what_is_read_to_evaluate_alone_may_sample_as_it_likes():
    run = {"trl": {"top_k": 1}}
    assert len(list(conflicts(run))) == 1
    assert list(conflicts(run, trains=False)) == []
