"""Checkpoints and the end of a run lie at the edges of rollout batches; others are refused with the nearest edge."""

from pathlib import Path

import pytest
from trl import GRPOConfig

from evenkeel.errors import Refusal
from evenkeel.trainer.run.schedule import ARGUMENT_RULES, check_arguments, optimizer_steps_per_block


@pytest.fixture
def arguments(tmp_path: Path):
    def build(**settings) -> GRPOConfig:
        defaults = {"num_generations": 4, "per_device_train_batch_size": 4, "use_cpu": True, "bf16": False}
        return GRPOConfig(output_dir=str(tmp_path), **{**defaults, **settings})

    return build


@pytest.mark.parametrize(
    ("settings", "num_passes", "expected"),
    [
        ({"steps_per_generation": 4}, 1, 4),
        ({"steps_per_generation": 4, "gradient_accumulation_steps": 2}, 2, 4),
        ({"steps_per_generation": 4, "gradient_accumulation_steps": 2, "num_iterations": 3}, 1, 6),
        ({"steps_per_generation": 2, "gradient_accumulation_steps": 4}, 1, 1),
        ({"steps_per_generation": 3, "gradient_accumulation_steps": 2}, 1, 3),  # edges meet after 6 micro-batches
    ],
)
def test_optimizer_steps_between_two_edges_of_a_rollout_batch(arguments, settings, num_passes, expected):
    assert optimizer_steps_per_block(arguments(**settings), num_passes) == expected


BEST = {"metric_for_best_model": "eval_test/avg@1", "greater_is_better": True, "eval_strategy": "steps"}
BEST_OF_ALL = {**BEST, "eval_steps": 1}
BLOCK_OF_4 = {"steps_per_generation": 4, "save_steps": 4}
BROKEN_AND_KEPT = [
    ("not-resumable", {"save_only_model": True}, {"save_only_model": False}),
    ("not-resumable", {"ignore_data_skip": True}, {}),
    ("not-resumable", {"enable_jit_checkpoint": True}, {}),
    ("inside-a-rollout-batch", {**BLOCK_OF_4, "save_steps": 6}, BLOCK_OF_4),
    ("inside-a-rollout-batch", {**BLOCK_OF_4, "save_steps": 0.1}, {"save_steps": 0.1}),
    ("inside-a-rollout-batch", {**BLOCK_OF_4, "max_steps": 7}, {**BLOCK_OF_4, "max_steps": 8}),
    ("inside-a-rollout-batch", {**BLOCK_OF_4, **BEST, "eval_steps": 6}, {**BLOCK_OF_4, **BEST, "eval_steps": 8}),
    ("best-checkpoint", {**BEST_OF_ALL, "save_strategy": "no"}, {**BEST_OF_ALL, "save_strategy": "best"}),
    ("best-checkpoint", {**BEST_OF_ALL, "save_total_limit": 1}, BEST_OF_ALL),
    ("optimizer-arguments", {"optim_args": "momentum=0.9"}, {"optim": "sgd", "optim_args": "momentum=0.9"}),
    ("optimizer-arguments", {"optim": "sgd", "optim_args": "momentum=0.9,weight_decay=0.1"}, {"optim": "sgd"}),
]


@pytest.mark.parametrize(("code", "broken", "kept"), BROKEN_AND_KEPT, ids=str)
def test_a_rule_of_the_arguments_is_broken_and_kept(arguments, code, broken, kept):
    assert {each for each, *_ in BROKEN_AND_KEPT} == {rule.code for rule in ARGUMENT_RULES}
    check_arguments(arguments(**kept))
    with pytest.raises(Refusal) as refused:
        check_arguments(arguments(**broken))
    assert [each.code for each in refused.value.problems] == [code]


def test_the_edges_around_a_step_count_the_passes(arguments):
    with pytest.raises(Refusal, match=r"13.*8 optimizer steps.*Write 8 or 16"):
        check_arguments(arguments(save_steps=13, steps_per_generation=4, save_strategy="steps"), num_passes=2)
