"""Checkpoints and the end of a run lie at the edges of rollout batches; others are refused with the nearest edge."""

from pathlib import Path

import pytest
from trl import GRPOConfig

from trainer.run.schedule import check_max_steps, check_save_steps, optimizer_steps_per_block
from trainer.step.compatibility import PreflightError


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


def test_a_checkpoint_inside_a_rollout_batch_is_refused_with_the_nearest_step_that_is_not(arguments):
    settings = {"steps_per_generation": 4, "save_strategy": "steps"}
    with pytest.raises(PreflightError) as error:
        check_save_steps(arguments(save_steps=13, **settings), num_passes=2)
    assert "trl.save_steps = 13" in str(error.value)
    assert "for 8 optimizer steps" in str(error.value)
    assert "Write save_steps: 16." in str(error.value)
    check_save_steps(arguments(save_steps=16, **settings), num_passes=2)
    check_save_steps(arguments(save_steps=12, **settings), num_passes=1)


def test_the_advised_step_is_never_zero(arguments):
    with pytest.raises(PreflightError, match="Write save_steps: 8"):
        check_save_steps(arguments(steps_per_generation=8, save_steps=3))


@pytest.mark.parametrize("settings", [{"save_strategy": "no"}, {"save_strategy": "epoch"}])
def test_save_steps_do_not_matter_to_other_save_strategies(arguments, settings):
    check_save_steps(arguments(steps_per_generation=8, save_steps=3, **settings))


def test_any_share_of_the_run_is_an_edge_where_every_step_is(arguments):
    check_save_steps(arguments(save_strategy="steps", save_steps=0.1))
    with pytest.raises(PreflightError, match=r"save_steps = 0\.1"):
        check_save_steps(arguments(save_strategy="steps", save_steps=0.1, steps_per_generation=2))


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
        check_max_steps(arguments(steps_per_generation=4, max_steps=max_steps), num_passes)
    assert expected in str(error.value)
    for edge in (8, 16, -1):  # -1: TRL counts epochs, whose rollout batches are whole
        check_max_steps(arguments(steps_per_generation=4, max_steps=edge), num_passes)
