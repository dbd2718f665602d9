"""Every rule of what goes together in a step: settings of which it speaks, and neighbours of which it does not."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor
from trl import GRPOConfig

from evenkeel.errors import Rule
from evenkeel.trainer.algorithms.revisions import RevisionOptions
from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.step.choices import SWITCHES, Loaded, Option, Settings, problems_of
from evenkeel.trainer.step.compatibility import RULES
from evenkeel.trainer.step.options import Speed

COMMON, STALE = Speed(generation=None, common_random_numbers=True), Speed(staleness=2)
SERVER = {"use_vllm": True, "vllm_mode": "server"}
VLLM = {"use_vllm": True}
TWO_STEPS = {"steps_per_generation": 2, "gradient_accumulation_steps": 1}
TWO_MICROBATCHES = {"gradient_accumulation_steps": 2}
IBPO = {"advantage": "ibpo", "revision": RevisionOptions(references=2)}
LOPTI = {"update_schedule": "lopti"}
SEQUENCE, KL = {"importance_sampling_level": "sequence"}, {"beta": 0.001}
BNPO, MASKED = {"loss_type": "bnpo"}, {"off_policy_mask_threshold": 0.5}
TOPR, CISPO = {"coefficient": "topr"}, {"loss_type": "cispo"}
RLCSD, PLANNED = {"token_weight": "rlcsd"}, {"speed": Speed(microbatches="planned")}
EXCHANGEABLE, TREE = {"advantage": "exchangeable"}, {"advantage": "exchangeable_prefix_tree"}
IN_TURNS = {"loaded": Loaded(own_generation="tools")}
ROUTER = {"loaded": Loaded(has_router_loss=True)}


def by_the_mean(probs: Tensor, mask: Tensor) -> Tensor:
    """A token weight that looks at its whole micro-batch."""
    return probs / probs[mask.bool()].mean()


SPEAKS_AND_IS_SILENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "siblings-to-contrast": ({"args": {"num_generations": 2}, "strategies": RLCSD}, {"strategies": RLCSD}),
    "owned-settings": ({"args": {"scale_rewards": "none"}}, {"args": {"scale_rewards": "group"}}),
    "sampling": (
        {"args": TWO_STEPS, "loaded": Loaded(sampling={"min_p": 0.1})},
        {"args": {"min_p": 0.0, **TWO_STEPS}, "loaded": Loaded(sampling={"min_p": 0.1})},
    ),
    "token-level": ({"args": SEQUENCE, "strategies": {"token_weight": "adv_reweight"}}, {"args": SEQUENCE}),
    "trajectory-weights": ({"args": BNPO, "strategies": EXCHANGEABLE}, {"args": BNPO}),
    "cancellation": ({"args": MASKED, "strategies": EXCHANGEABLE}, {"args": MASKED}),
    "coefficient": ({"args": {"loss_type": "dapo"}, "strategies": TOPR}, {"args": CISPO, "strategies": TOPR}),
    "whole-groups": (
        {"args": {"per_device_train_batch_size": 2, **TWO_MICROBATCHES}, "strategies": {"keep_groups": "forward"}},
        {"strategies": {"keep_groups": "forward"}},
    ),
    "passes": ({"args": {"entropy_coef": 0.1}, "strategies": LOPTI}, {"args": {"entropy_coef": 0.1}}),
    "passes-of-a-router": ({"strategies": LOPTI, **ROUTER}, ROUTER),
    "plain-text": (
        {"strategies": {"prompt_sampler": "dynamic"}, "loaded": Loaded(image_column="image")},
        {"strategies": {"prompt_sampler": "difficulty"}, "loaded": Loaded(image_column="image")},  # one round
    ),
    "common-noise": ({"speed": Speed(common_random_numbers=True)}, {"speed": COMMON}),
    "entropies-of-an-engine": (
        {"args": VLLM, "strategies": {"token_weight": "top_entropy"}, "speed": STALE},
        {"args": VLLM, "strategies": {"token_weight": "adv_reweight"}, "speed": STALE},
    ),
}

REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = [
    (
        "cancellation",
        {**TWO_MICROBATCHES, "per_device_train_batch_size": 2},
        {**EXCHANGEABLE, "token_weight": "clip_cov"},
        [{"gradient_accumulation_steps": 1}],
    ),
    ("sampling", {"top_k": 20, **TWO_STEPS}, {}, [{"top_k": 0, **TWO_STEPS}]),
    ("sampling", {"top_k": None, **TWO_STEPS}, {}, [{"top_k": None, **VLLM, **TWO_STEPS}]),
    *(
        ("sampling", {**VLLM, "generation_kwargs": {name: value}}, {}, [{**VLLM, "generation_kwargs": {name: usual}}])
        for name, value, usual in (
            ("temperature", 0.5, 1.0),
            ("presence_penalty", 0.2, 0.0),
            ("no_repeat_ngram_size", 3, 0),
            ("repetition_penalty", "1.1", None),
        )
    ),
    ("owned-settings", {"scale_rewards": "batch"}, {}, [{"scale_rewards": True}]),
    ("owned-settings", {"multi_objective_aggregation": "normalize_then_sum"}, {}, []),
    ("owned-settings", {"num_iterations": 2}, LOPTI, [{"num_iterations": 1}]),
    ("trajectory-weights", {"loss_type": "vespo"}, EXCHANGEABLE, [{"loss_type": "luspo"}, {"loss_type": "sapo"}]),
    (
        "trajectory-weights",
        {**SEQUENCE, **TWO_STEPS},
        EXCHANGEABLE,
        [SEQUENCE, TWO_STEPS, {**SEQUENCE, "steps_per_generation": 2, "gradient_accumulation_steps": 4}],
    ),
    ("trajectory-weights", {**SEQUENCE, "num_iterations": 2}, EXCHANGEABLE, [{"num_iterations": 2}]),
    ("token-level", SEQUENCE, TREE, [{**SEQUENCE, "loss_type": "cispo"}]),
    ("passes", SEQUENCE, LOPTI, [{"importance_sampling_level": "token"}]),
    ("trajectory-weights", {"loss_type": "grpo"}, TREE, [{"loss_type": "cispo"}, {"loss_type": "dr_grpo"}]),
    (
        "trajectory-weights",
        {**VLLM, "vllm_importance_sampling_mode": "sequence_mask"},
        TREE,
        [
            {**VLLM, "vllm_importance_sampling_mode": "token_mask"},
            {"vllm_importance_sampling_mode": "sequence_mask"},
            {**VLLM, "vllm_importance_sampling_mode": "sequence_mask", "vllm_importance_sampling_correction": False},
        ],
    ),
    ("passes", {"steps_per_generation": 3, "gradient_accumulation_steps": 2}, LOPTI, [TWO_STEPS]),
    ("passes", {"steps_per_generation": 1, "gradient_accumulation_steps": 2}, LOPTI, []),
    ("passes", {"use_adaptive_entropy": True}, LOPTI, [{"use_adaptive_entropy": False}]),
    *(
        ("passes", {**KL, "loss_type": name}, LOPTI, [{"loss_type": name}, {**KL, "loss_type": "luspo"}])
        for name in ("grpo", "bnpo", "sapo", "vespo")
    ),
    ("passes", {**KL, "top_entropy_quantile": 0.2}, LOPTI, [KL, {"top_entropy_quantile": 0.2}]),
    ("siblings-to-contrast", {"num_generations": 2}, IBPO, [{"num_generations": 4}]),
]
"""What else the same rules refuse: code, arguments, strategies, and other arguments that pass."""

GIVEN_UP: list[tuple[Option, dict[str, Any], dict[str, Any]]] = [
    ("generation", {"args": VLLM}, {}),
    ("generation", {"loaded": Loaded(is_sharded=True)}, {}),
    ("overlap_generation", {"args": VLLM, "speed": STALE}, {"args": SERVER, "speed": STALE}),
    ("overlap_generation", IN_TURNS, {}),
    ("skip_old_logps", {"strategies": IBPO}, {}),
    ("skip_old_logps", {"args": VLLM, "strategies": {"advantage": "exchangeable"}}, {"args": VLLM}),
    ("skip_old_logps", {"strategies": {"advantage": "gtpo"}}, {}),
    ("skip_old_logps", {"loaded": Loaded(varies="it has dropout")}, {}),
    ("microbatches", {"strategies": {"token_weight": by_the_mean}}, {"strategies": {"token_weight": "adv_reweight"}}),
    ("shared_prompts", {**PLANNED, "loaded": Loaded(unshareable="its layers slide")}, PLANNED),
    ("microbatches", {"loaded": Loaded(rope_type="dynamic")}, {"loaded": Loaded(rope_type="default")}),
    ("generation", {"args": {"generation_kwargs": {"num_beams": 2}}}, {}),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_speaks_and_is_silent(rule: Rule, tmp_path: Path):
    speaks, silent = SPEAKS_AND_IS_SILENT[rule.code]
    (problem,) = rule.problems(settings(tmp_path, **speaks))
    assert problem.key in rule.settings
    assert list(rule.problems(settings(tmp_path, **silent))) == []
    assert list(rule.problems(settings(tmp_path))) == []


@pytest.mark.parametrize(("code", "refused", "strategies", "allowed"), REFUSED)
def test_a_rule_refuses_each_of_its_kinds_and_lets_its_neighbours_pass(
    tmp_path: Path, code: str, refused: dict[str, Any], strategies: dict[str, Any], allowed: list[dict[str, Any]]
):
    def told(args: dict[str, Any]) -> set[str]:
        asked = Settings(config(tmp_path, args), built(**strategies))
        return {rule.code for rule in RULES for _ in rule.problems(asked)}

    assert told(refused) == {code}
    assert [told(args) for args in allowed] == [set()] * len(allowed)


@pytest.mark.parametrize(("option", "speaks", "silent"), GIVEN_UP)
def test_an_option_is_given_up_with_a_reason(
    option: Option, speaks: dict[str, Any], silent: dict[str, Any], tmp_path: Path
):
    assert {each for each, *_ in GIVEN_UP} == {*SWITCHES}
    before = {*problems_of(settings(tmp_path, **silent), option)}
    assert len({*problems_of(settings(tmp_path, **speaks), option)} - before) == 1


def config(folder: Path, args: Any) -> GRPOConfig:
    sizes = {"num_generations": 4, "per_device_train_batch_size": 4, "use_cpu": True, "bf16": False}
    return GRPOConfig(str(folder), **{**sizes, **(args or {})})


def settings(folder: Path, args: Any = None, strategies: Any = None, **others: Any) -> Settings:
    return Settings(config(folder, args), build_strategies(**(strategies or {})), **others)


built = cache(build_strategies)
"""Each is tried once when it is built."""


@pytest.mark.parametrize("wrong", [{"microbatches": "plan"}, {"generation": "fast"}, {"staleness": -1}])
def test_a_speed_option_has_no_other_values(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Speed(**wrong)
