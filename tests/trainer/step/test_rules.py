"""Every rule of what goes together in a step: settings of which it speaks, and neighbours of which it does not."""

from pathlib import Path
from typing import Any

import pytest
from torch import Tensor
from trl import GRPOConfig

from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.step.compatibility import RULES, Loaded, Rule, Settings
from evenkeel.trainer.step.options import Speed

COMMON, STALE = Speed(generation=None, common_random_numbers=True), Speed(staleness=2)
SERVER = {"use_vllm": True, "vllm_mode": "server"}
VLLM = {"use_vllm": True}
TWO_STEPS = {"steps_per_generation": 2, "gradient_accumulation_steps": 1}
TWO_MICROBATCHES = {"gradient_accumulation_steps": 2}
IBPO = {"advantage": "ibpo", "revision": {"references": 2}}
LOPTI = {"update_schedule": "lopti"}
IN_TURNS = {"loaded": Loaded(own_generation="tools")}
BEST = {"load_best_model_at_end": True, "eval_strategy": "steps", "save_strategy": "steps"}
ROUTER = {"loaded": Loaded(has_router_loss=True)}


def by_the_mean(probs: Tensor, mask: Tensor) -> Tensor:
    """A token weight that looks at its whole micro-batch."""
    return probs / probs[mask.bool()].mean()


SPEAKS_AND_IS_SILENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "taught-turns": ({"strategies": {"token_weight": "rlsd"}, **IN_TURNS}, IN_TURNS),
    "siblings-to-contrast": (
        {"args": {"num_generations": 2}, "strategies": {"token_weight": "rlcsd"}},
        {"args": {"num_generations": 4}, "strategies": {"token_weight": "rlcsd"}},
    ),
    "answers-for-a-teacher": (
        {"strategies": {"advantage": "sdpo"}, "loaded": Loaded(unusable_references="the row's reference is None")},
        {"strategies": {"advantage": "sdpo"}},
    ),
    "owned-settings": ({"args": {"scale_rewards": "none"}}, {"args": {"scale_rewards": "group"}}),
    "sampling": ({"args": {"top_p": 0.9, **TWO_STEPS}}, {"args": {"top_p": 0.9}}),
    "token-level": (
        {"args": {"importance_sampling_level": "sequence"}, "strategies": {"token_weight": "adv_reweight"}},
        {"args": {"importance_sampling_level": "sequence"}},
    ),
    "trajectory-weights": (
        {"args": {"loss_type": "bnpo"}, "strategies": {"advantage": "exchangeable"}},
        {"args": {"loss_type": "bnpo"}},
    ),
    "cancellation": (
        {"args": {"off_policy_mask_threshold": 0.5}, "strategies": {"advantage": "exchangeable"}},
        {"args": {"off_policy_mask_threshold": 0.5}},
    ),
    "coefficient": (
        {"args": {"loss_type": "dapo"}, "strategies": {"coefficient": "topr"}},
        {"args": {"loss_type": "cispo"}, "strategies": {"coefficient": "topr"}},
    ),
    "whole-groups": (
        {"args": {"per_device_train_batch_size": 2, **TWO_MICROBATCHES}, "strategies": {"keep_groups": "forward"}},
        {"strategies": {"keep_groups": "forward"}},
    ),
    "passes": (
        {"args": {"entropy_coef": 0.1}, "strategies": LOPTI},
        {"args": {"entropy_coef": 0.1}},
    ),
    "references": (
        {"strategies": {"advantage": "ibpo", "revision": {"references": 4}}},
        {"strategies": {"advantage": "ibpo", "revision": {"references": 3}}},  # of 4 answers
    ),
    "cut-over-all-ranks": (
        {"args": {"steps_per_generation": 3, "gradient_accumulation_steps": 2}, "cut": "over_all_ranks"},
        {"args": {"steps_per_generation": 4, "gradient_accumulation_steps": 2}, "cut": "over_all_ranks"},
    ),
    "fp16-on-a-cpu": ({"args": {"fp16": True}}, {"args": {"bf16": True}}),
    "passes-of-a-router": ({"strategies": LOPTI, **ROUTER}, ROUTER),
    "chosen-prompts": (
        {"strategies": {"prompt_sampler": "dynamic"}, "loaded": Loaded(own_generation="rollout_func")},
        {"strategies": {"prompt_sampler": "dynamic"}, **IN_TURNS},
    ),
    "revised-turns": ({"strategies": IBPO, **IN_TURNS}, IN_TURNS),
    "credit-by-turn": (
        {"strategies": {"advantage": "gigpo"}},
        {"strategies": {"advantage": "gigpo"}, **IN_TURNS},
    ),
    "decodings-of-plain-functions": (
        {"has_decodings": True, "loaded": Loaded(special_functions=("judge",))},
        {"loaded": Loaded(special_functions=("judge",))},
    ),
    "names-of-functions": (
        {"has_decodings": True, "loaded": Loaded(same_names=("<lambda>",))},
        {"loaded": Loaded(same_names=("<lambda>",))},
    ),
    "images": (
        {"strategies": {"prompt_sampler": "dynamic"}, "loaded": Loaded(image_column="image")},
        {"strategies": {"prompt_sampler": "difficulty"}, "loaded": Loaded(image_column="image")},  # one round
    ),
    "best-model": (
        {"args": BEST, "strategies": {"advantage": "rloo"}},
        {"args": {**BEST, "metric_for_best_model": "eval_reward"}, "strategies": {"advantage": "rloo"}},
    ),
    "compact-generation": ({"args": VLLM}, {}),
    "compact-generation-by-model": ({"loaded": Loaded(is_sharded=True)}, {}),
    "common-noise": ({"speed": Speed(common_random_numbers=True)}, {"speed": COMMON}),
    "common-noise-of-a-rollout-function": (
        {"speed": COMMON, "loaded": Loaded(own_generation="rollout_func")},
        {"speed": COMMON, **IN_TURNS},
    ),
    "order-of-the-run": (
        {"args": {"ignore_data_skip": True}, "speed": STALE},
        {"args": {"ignore_data_skip": True}},
    ),
    "entropies-of-an-engine": (
        {"args": VLLM, "strategies": {"token_weight": "top_entropy"}, "speed": STALE},
        {"args": VLLM, "strategies": {"token_weight": "adv_reweight"}, "speed": STALE},
    ),
    "overlapped-generation": (
        {"args": VLLM, "speed": STALE},
        {"args": SERVER, "speed": STALE},
    ),
    "overlapped-turns": (IN_TURNS, {}),
    "rows-ahead": (
        {"speed": STALE, "loaded": Loaded(has_positions=False)},
        {"loaded": Loaded(has_positions=False)},
    ),
    "old-policy-is-asked-for": ({"strategies": IBPO}, {}),
    "passes-differ": ({"loaded": Loaded(varies="it has dropout")}, {}),
    "loss-of-the-cut": (
        {"strategies": {"token_weight": by_the_mean}},
        {"strategies": {"token_weight": "adv_reweight"}},
    ),
    "model-of-shared-prompts": (
        {"speed": Speed(microbatches="planned"), "loaded": Loaded(unshareable="its layers slide")},
        {"speed": Speed(microbatches="planned")},
    ),
    "model-of-the-cut": ({"loaded": Loaded(rope_type="dynamic")}, {"loaded": Loaded(rope_type="default")}),
}


def test_no_rule_is_without_a_case():
    assert sorted(rule.code for rule in RULES) == sorted(SPEAKS_AND_IS_SILENT)


@pytest.mark.parametrize(("advantage", "is_refused"), [("gigpo", True), ("turn_discounted", False)])
def test_states_that_no_environment_names_are_not_compared(tmp_path: Path, advantage: str, is_refused: bool):
    (rule,) = (each for each in RULES if each.code == "credit-by-turn")
    for columns, expected in ({"turn_rewards"}, is_refused), ({"turn_rewards", "state_keys"}, False):
        loaded = Loaded(own_generation="environment_factories", turn_columns=frozenset(columns))
        found = list(rule.problems(settings(tmp_path, strategies={"advantage": advantage}, loaded=loaded)))
        assert ["a method state()" in message for message in found] == [True] * expected


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_speaks_and_is_silent(rule: Rule, tmp_path: Path):
    speaks, silent = SPEAKS_AND_IS_SILENT[rule.code]
    (message,) = rule.problems(settings(tmp_path, **speaks))
    assert message
    assert list(rule.problems(settings(tmp_path, **silent))) == []
    assert rule.of in ("overlap_generation", "shared_prompts") or list(rule.problems(settings(tmp_path))) == []


def settings(folder: Path, args: Any = None, strategies: Any = None, **others: Any) -> Settings:
    sizes = {"num_generations": 4, "per_device_train_batch_size": 4, "use_cpu": True, "bf16": False}
    return Settings(
        GRPOConfig(str(folder), **{**sizes, **(args or {})}), build_strategies(**(strategies or {})), **others
    )
