"""Every rule: the refused combination, what its message names, and the neighbour that passes."""

from pathlib import Path

import pytest
from trl import GRPOConfig

from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.step.compatibility import PreflightError, check_combination

PREFIX_TREE = "exchangeable_prefix_tree"
TOKEN_CLASS = "exchangeable_token_class"
PER_SEQUENCE = {"importance_sampling_level": "sequence"}
TWO_STEPS_PER_BATCH = {"steps_per_generation": 2, "gradient_accumulation_steps": 1}
VLLM = {"use_vllm": True}


@pytest.fixture
def arguments(tmp_path: Path):
    def build(**settings) -> GRPOConfig:
        defaults = {"num_generations": 4, "per_device_train_batch_size": 4, "use_cpu": True, "bf16": False}
        return GRPOConfig(output_dir=str(tmp_path), **{**defaults, **settings})

    return build


def check(args, advantage="grpo", update_schedule="single_pass", token_weight="uniform"):
    check_combination(args, build_strategies(advantage, token_weight, update_schedule))


def case(name, refused, fragments, *allowed, **strategies):
    return pytest.param(refused, fragments, allowed, strategies, id=name)


RULES = [
    case(
        "weights that depend on the cut",
        {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 2},
        [
            "advantage 'exchangeable' with token_weight 'clip_cov' over 2 micro-batches",
            "gradient_accumulation_steps: 1",
        ],
        {"gradient_accumulation_steps": 1},
        advantage="exchangeable",
        token_weight="clip_cov",
    ),
    case(
        "weights normalised over a micro-batch",
        {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 2},
        ["advantage 'exchangeable' with token_weight 'adv_reweight' over 2 micro-batches"],
        {"gradient_accumulation_steps": 1},
        advantage="exchangeable",
        token_weight={"name": "adv_reweight", "normalize": "mean"},
    ),
    case(
        "an off-policy mask breaks cancellation",
        {"off_policy_mask_threshold": 0.5},
        ["advantage 'exchangeable' with off_policy_mask_threshold = 0.5", "Leave off_policy_mask_threshold out"],
        {"off_policy_mask_threshold": None},
        advantage="exchangeable",
    ),
    case(
        "a truncated sampling distribution with a ratio",
        {"top_p": 0.9, "top_k": 20, "steps_per_generation": 2, "gradient_accumulation_steps": 1},
        ["top_p = 0.9, top_k = 20 with an importance ratio", "another distribution than π_old"],
        {"top_p": 1.0, "top_k": 0},
        {"steps_per_generation": 1},
    ),
    *(
        case(
            f"{name} that only the engine applies",
            {**VLLM, "generation_kwargs": {name: value}},
            [f"{name} = {value}", "another distribution than π_old"],
            {**VLLM, "generation_kwargs": {name: usual}},
        )
        for name, value, usual in (("temperature", 0.5, 1.0), ("presence_penalty", 0.2, 0.0), ("min_p", 0.1, 0.0))
    ),
    case(
        "scale_rewards none",
        {"scale_rewards": "none"},
        ["scale_rewards = 'none'", "advantage estimator", "advantage: dr_grpo"],
        {"scale_rewards": "group"},
    ),
    case(
        "scale_rewards batch",
        {"scale_rewards": "batch"},
        ["scale_rewards = 'batch'", "advantage: reinforce_pp"],
        {"scale_rewards": True},
    ),
    case(
        "multi_objective_aggregation",
        {"multi_objective_aggregation": "normalize_then_sum"},
        ["multi_objective_aggregation = 'normalize_then_sum'", "advantage estimator", "Leave it out"],
        {"multi_objective_aggregation": "sum_then_normalize"},
    ),
    case(
        "num_iterations with lopti",
        {"num_iterations": 2},
        ["num_iterations = 2", "update_schedule 'lopti' makes 2 passes", "Leave num_iterations out"],
        {"num_iterations": 1},
        update_schedule="lopti",
    ),
    case(
        "exchangeable with bnpo",
        {"loss_type": "bnpo"},
        ["advantage 'exchangeable'", "loss_type 'bnpo'", "Use one of cispo, dapo, dr_grpo, grpo, luspo, sapo"],
        *({"loss_type": loss_type} for loss_type in ("cispo", "dapo", "dr_grpo", "grpo", "luspo", "sapo")),
        advantage="exchangeable",
    ),
    case(
        "exchangeable with vespo",
        {"loss_type": "vespo"},
        ["advantage 'exchangeable'", "loss_type 'vespo'"],
        {"loss_type": "dapo"},
        advantage="exchangeable",
    ),
    case(
        "exchangeable, sequence ratio, two steps per batch",
        {**PER_SEQUENCE, **TWO_STEPS_PER_BATCH},
        ["advantage 'exchangeable'", "importance_sampling_level 'sequence'", "more than one optimizer step"],
        PER_SEQUENCE,
        TWO_STEPS_PER_BATCH,
        {**PER_SEQUENCE, "steps_per_generation": 2, "gradient_accumulation_steps": 2},
        {**PER_SEQUENCE, "steps_per_generation": 2, "gradient_accumulation_steps": 4},
        advantage="exchangeable",
    ),
    case(
        "exchangeable, sequence ratio, two iterations",
        {**PER_SEQUENCE, "num_iterations": 2},
        ["importance_sampling_level: token", "steps_per_generation = gradient_accumulation_steps, num_iterations: 1"],
        {"num_iterations": 2},
        {**PER_SEQUENCE, "num_iterations": 1},
        advantage="exchangeable",
    ),
    *(
        case(
            f"{name} with a sequence ratio",
            PER_SEQUENCE,
            [f"{named} with importance_sampling_level 'sequence'", "Use importance_sampling_level: token"],
            {"importance_sampling_level": "token"},
            {**PER_SEQUENCE, "loss_type": "cispo"},
            **strategies,
        )
        for name, named, strategies in [
            ("prefix_tree", "advantage 'exchangeable_prefix_tree'", {"advantage": PREFIX_TREE}),
            ("token_class", "advantage 'exchangeable_token_class'", {"advantage": TOKEN_CLASS}),
            ("adv_reweight", "token_weight 'adv_reweight'", {"token_weight": "adv_reweight"}),
        ]
    ),
    *(
        case(
            f"prefix_tree with {loss_type}",
            {"loss_type": loss_type},
            ["exchangeable_prefix_tree", f"loss_type {loss_type!r} divides by its own length", "Use loss_type dapo"],
            *({"loss_type": allowed} for allowed in ("cispo", "dapo", "dr_grpo")),
            advantage=PREFIX_TREE,
        )
        for loss_type in ("grpo", "sapo")
    ),
    *(
        case(
            f"prefix_tree with {mode}",
            {**VLLM, "vllm_importance_sampling_mode": mode},
            ["exchangeable_prefix_tree", f"vllm_importance_sampling_mode {mode!r}", "token-level correction"],
            {**VLLM, "vllm_importance_sampling_mode": mode.replace("sequence", "token")},
            {**VLLM, "vllm_importance_sampling_mode": mode, "vllm_importance_sampling_correction": False},
            {"vllm_importance_sampling_mode": mode},
            advantage=PREFIX_TREE,
        )
        for mode in ("sequence_mask", "sequence_truncate")
    ),
    case(
        "lopti, uneven optimizer steps",
        {"steps_per_generation": 3, "gradient_accumulation_steps": 2},
        ["update_schedule 'lopti'", "steps_per_generation", "multiple of gradient_accumulation_steps"],
        {"steps_per_generation": 4, "gradient_accumulation_steps": 2},
        {"steps_per_generation": 2, "gradient_accumulation_steps": 2},
        update_schedule="lopti",
    ),
    case(
        "lopti, less than an optimizer step",
        {"steps_per_generation": 1, "gradient_accumulation_steps": 2},
        ["update_schedule 'lopti'", "two passes would share a step"],
        {"steps_per_generation": 1, "gradient_accumulation_steps": 1},
        update_schedule="lopti",
    ),
    case(
        "lopti with a sequence ratio",
        PER_SEQUENCE,
        ["update_schedule 'lopti' with importance_sampling_level 'sequence'", "importance_sampling_level: token"],
        {"importance_sampling_level": "token"},
        update_schedule="lopti",
    ),
    case(
        "lopti with an entropy bonus",
        {"entropy_coef": 0.01},
        ["update_schedule 'lopti' with an entropy bonus", "2 times", "Set entropy_coef: 0.0"],
        {"entropy_coef": 0.0},
        update_schedule="lopti",
    ),
    case(
        "lopti with adaptive entropy",
        {"use_adaptive_entropy": True},
        ["update_schedule 'lopti' with an entropy bonus", "use_adaptive_entropy: false"],
        {"use_adaptive_entropy": False},
        update_schedule="lopti",
    ),
    *(
        case(
            f"lopti with a KL term and {loss_type}",
            {"beta": 0.001, "loss_type": loss_type},
            ["update_schedule 'lopti' with beta = 0.001", f"loss_type {loss_type!r}", "or beta: 0.0"],
            {"beta": 0.0, "loss_type": loss_type},
            *({"beta": 0.001, "loss_type": allowed} for allowed in ("dapo", "dr_grpo", "cispo", "luspo")),
            update_schedule="lopti",
        )
        for loss_type in ("grpo", "bnpo", "sapo", "vespo")
    ),
    *(
        case(
            f"lopti with a KL term and {setting}",
            {"beta": 0.001, setting: value},
            ["update_schedule 'lopti' with beta = 0.001", setting, "set beta: 0.0"],
            {"beta": 0.0, setting: value},
            {"beta": 0.001},
            update_schedule="lopti",
        )
        for setting, value in [("top_entropy_quantile", 0.2), ("off_policy_mask_threshold", 0.5)]
    ),
]


@pytest.mark.parametrize(("refused", "fragments", "allowed", "strategies"), RULES)
def test_the_combination_is_refused_by_name_and_its_neighbours_pass(arguments, refused, fragments, allowed, strategies):
    with pytest.raises(PreflightError) as error:
        check(arguments(**refused), **strategies)
    for fragment in fragments:
        assert fragment in str(error.value)
    for settings in allowed:
        check(arguments(**settings), **strategies)


@pytest.mark.parametrize(("refused", "fragments", "allowed", "strategies"), [rule for rule in RULES if rule.values[3]])
def test_what_a_strategy_cannot_go_with_passes_without_it(arguments, refused, fragments, allowed, strategies):
    check(arguments(**refused))


def test_all_problems_are_told_at_once(arguments):
    args = arguments(scale_rewards="none", entropy_coef=0.1, loss_type="bnpo")
    with pytest.raises(PreflightError) as error:
        check(args, advantage="exchangeable", update_schedule="lopti")
    assert len(str(error.value).split("\n\n")) == 3
