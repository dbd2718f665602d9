"""Rules of which `test_rules` tries one half: what else each refuses, by its code, and the neighbours that pass."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from trl import GRPOConfig

from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.step.choices import Settings
from evenkeel.trainer.step.compatibility import RULES

SEQUENCE = {"importance_sampling_level": "sequence"}
TWO_STEPS = {"steps_per_generation": 2, "gradient_accumulation_steps": 1}
TWO_CUTS = {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 2}
KL = {"beta": 0.001}
VLLM = {"use_vllm": True}
TREE = {"advantage": "exchangeable_prefix_tree"}
EXCHANGEABLE = {"advantage": "exchangeable"}
LOPTI = {"update_schedule": "lopti"}

REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = [
    ("cancellation", TWO_CUTS, {**EXCHANGEABLE, "token_weight": "clip_cov"}, [{"gradient_accumulation_steps": 1}]),
    ("sampling", {"top_k": 20, **TWO_STEPS}, {}, [{"top_k": 0, **TWO_STEPS}]),
    *(
        ("sampling", {**VLLM, "generation_kwargs": {name: value}}, {}, [{**VLLM, "generation_kwargs": {name: usual}}])
        for name, value, usual in (("temperature", 0.5, 1.0), ("presence_penalty", 0.2, 0.0), ("min_p", 0.1, 0.0))
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
]


CODES = {code for code, *_ in REFUSED}
built = cache(build_strategies)
"""Each is tried once when it is built."""


@pytest.mark.parametrize(("code", "refused", "strategies", "allowed"), REFUSED)
def test_a_rule_refuses_each_of_its_kinds_and_lets_its_neighbours_pass(
    tmp_path: Path, code: str, refused: dict[str, Any], strategies: dict[str, Any], allowed: list[dict[str, Any]]
):
    def told(args: dict[str, Any]) -> list[str]:
        sizes = {"num_generations": 4, "per_device_train_batch_size": 4, "use_cpu": True, "bf16": False}
        asked = Settings(GRPOConfig(str(tmp_path), **{**sizes, **args}), built(**strategies))
        return [rule.code for rule in RULES if rule.code in CODES for _ in rule.problems(asked)]

    assert told(refused) == [code]
    for args in allowed:
        assert told(args) == []
