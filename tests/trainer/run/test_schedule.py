"""Checkpoints and the end of a run lie at the edges of rollout batches; others are refused with the nearest edge."""

from pathlib import Path

import pytest
from trl import GRPOConfig

from evenkeel.trainer.run.schedule import ARGUMENT_RULES, Arguments, check_arguments, optimizer_steps_per_block
from evenkeel.trainer.step.compatibility import PreflightError


@pytest.fixture
def arguments(tmp_path: Path):
    def build(**settings) -> GRPOConfig:
        defaults = {"num_generations": 4, "per_device_train_batch_size": 4, "use_cpu": True, "bf16": False}
        return GRPOConfig(output_dir=str(tmp_path), **{**defaults, **settings})

    return build


@pytest.mark.parametrize(
    ("settings", "num_passes", "expected"),
    [
        ({}, 1, 1),
        ({"steps_per_generation": 4}, 1, 4),
        ({"steps_per_generation": 4, "gradient_accumulation_steps": 2}, 1, 2),
        ({"steps_per_generation": 4, "gradient_accumulation_steps": 2}, 2, 4),
        ({"steps_per_generation": 4, "gradient_accumulation_steps": 2, "num_iterations": 3}, 1, 6),
        ({"steps_per_generation": 2, "gradient_accumulation_steps": 4}, 1, 1),
        ({"steps_per_generation": 3, "gradient_accumulation_steps": 2}, 1, 3),  # edges meet after 6 micro-batches
    ],
)
def test_optimizer_steps_between_two_edges_of_a_rollout_batch(arguments, settings, num_passes, expected):
    assert optimizer_steps_per_block(arguments(**settings), num_passes) == expected


@pytest.mark.parametrize(
    ("max_steps", "num_passes", "expected"),
    [
        (9, 2, "trained for 1 of its 8 steps. Write max_steps: 8 or 16."),
        (15, 2, "trained for 7 of its 8 steps. Write max_steps: 8 or 16."),
        (3, 1, "trained for 3 of its 4 steps. Write max_steps: 4."),  # below the first edge there is none
    ],
)
def test_an_end_inside_a_rollout_batch_is_refused_with_the_edges_around_it(arguments, max_steps, num_passes, expected):
    with pytest.raises(PreflightError, match=f"trl.max_steps = {max_steps}, but one rollout batch") as error:
        check_arguments(arguments(steps_per_generation=4, save_strategy="no", max_steps=max_steps), num_passes)
    assert expected in str(error.value)
    for edge in (8, 16, -1):  # -1: TRL counts epochs, whose rollout batches are whole
        check_arguments(arguments(steps_per_generation=4, save_strategy="no", max_steps=edge), num_passes)


BEST = {"metric_for_best_model": "eval_test/avg@1", "greater_is_better": True, "eval_strategy": "steps"}
BLOCK_OF_4 = {"steps_per_generation": 4, "save_steps": 4}
BROKEN_AND_KEPT = {
    "save-only-model": ({"save_only_model": True}, {"save_only_model": False}),
    "ignore-data-skip": ({"ignore_data_skip": True}, {"ignore_data_skip": False}),
    "enable-jit-checkpoint": ({"enable_jit_checkpoint": True}, {"enable_jit_checkpoint": False}),
    "checkpoint-inside-a-rollout-batch": ({**BLOCK_OF_4, "save_steps": 6}, BLOCK_OF_4),
    "end-inside-a-rollout-batch": ({**BLOCK_OF_4, "max_steps": 7}, {**BLOCK_OF_4, "max_steps": 8}),
    "learning-rate-follows-the-evaluation": (
        {"lr_scheduler_type": "reduce_lr_on_plateau", "eval_strategy": "steps", "eval_steps": 1},
        {"lr_scheduler_type": "cosine"},
    ),
    "best-checkpoint-inside-a-rollout-batch": (
        {**BLOCK_OF_4, **BEST, "eval_steps": 6},
        {**BLOCK_OF_4, **BEST, "eval_steps": 8},
    ),
    "best-checkpoint-without-saving": (
        {**BEST, "eval_steps": 1, "save_strategy": "no"},
        {**BEST, "eval_steps": 1, "save_strategy": "best"},
    ),
    "best-checkpoint-alone": (
        {**BEST, "eval_steps": 1, "save_total_limit": 1},
        {**BEST, "eval_steps": 1, "save_total_limit": 2},
    ),
}


@pytest.mark.parametrize("rule", ARGUMENT_RULES, ids=lambda rule: rule.code)
def test_a_rule_of_the_arguments_is_broken_and_kept(arguments, rule):
    broken, kept = (Arguments(arguments(**settings)) for settings in BROKEN_AND_KEPT[rule.code])
    assert [each.code for each in ARGUMENT_RULES for _ in each.problems(broken)] == [rule.code]
    assert [each.code for each in ARGUMENT_RULES for _ in each.problems(kept)] == []
    with pytest.raises(PreflightError, match=r"Write|Leave") as error:
        check_arguments(broken.args)
    assert any(setting in str(error.value) for setting in rule.settings)
