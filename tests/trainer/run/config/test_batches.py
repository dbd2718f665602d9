"""The batch arithmetic: what fits, what TRL is told, and the nearest numbers where nothing fits."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import RunConfig, batch_plan, grpo_config, lora_config


def run(trl: dict[str, object], **sections: object) -> RunConfig:
    source = {"path": "hub/rows", "split": "train"}
    required = {"name": "run", "output_dir": "runs/run", "model": {"name_or_path": "m"}, "data": {"train": source}}
    return RunConfig.model_validate({**required, "rewards": [{"verifier": "exact_match"}], "trl": trl, **sections})


def in_words(prompts: int, update: int, **trl: object) -> RunConfig:
    return run(dict(trl), algorithm={"prompts_per_rollout": prompts, "sequences_per_update": update})


def test_trl_arguments_are_read_as_trl_reads_them() -> None:
    defaults = batch_plan(run({}), 2)  # TRL: 8 per device, 8 completions, generated for one update at a time
    assert (defaults.sequences_per_rollout, defaults.prompts_per_rollout, defaults.updates_per_pass) == (16, 2, 1)
    steps = batch_plan(run({"steps_per_generation": 4, "gradient_accumulation_steps": 2, "num_iterations": 3}), 1)
    assert (steps.sequences_per_rollout, steps.updates_per_pass, steps.optimizer_steps_per_rollout) == (32, 2, 6)
    batch = batch_plan(run({"generation_batch_size": 64}), 2)
    assert (batch.steps_per_generation, batch.updates_per_pass) == (4, 4)


SMALL, GENERATIONS = st.integers(1, 12), st.integers(2, 8)


@given(SMALL, SMALL, SMALL, GENERATIONS, st.integers(1, 4))
def test_a_plan_keeps_groups_and_updates_whole(
    prompts: int, update: int, per_device: int, generations: int, world_size: int
) -> None:
    config = in_words(prompts, update, per_device_train_batch_size=per_device, num_generations=generations)
    if (prompts * generations) % update or update % (per_device * world_size):
        with pytest.raises(Refusal):
            batch_plan(config, world_size)
        return
    plan = batch_plan(config, world_size)
    assert plan.prompts_per_rollout == prompts
    assert plan.sequences_per_rollout == prompts * generations
    assert plan.sequences_per_update == update
    assert plan.updates_per_pass * update == prompts * generations


def named(error: Refusal) -> list[int]:
    """The numbers that a refusal proposes."""
    return [int(number) for number in error.problems[0].instead.removeprefix("Write ").rstrip(".").split(" or ")]


@given(
    st.sampled_from(["generation_batch_size", "steps_per_generation"]), st.integers(1, 99), SMALL, SMALL, GENERATIONS
)
def test_the_numbers_that_an_error_names_do_work(
    name: str, value: int, per_device: int, accumulation: int, generations: int
) -> None:
    trl = {
        "per_device_train_batch_size": per_device,
        "gradient_accumulation_steps": accumulation,
        "num_generations": generations,
    }
    try:
        batch_plan(run({**trl, name: value}), 2)
    except Refusal as error:
        for number in named(error):
            batch_plan(run({**trl, name: number}), 2)


def accumulated(steps: int, **trl: object) -> RunConfig:
    return run({"gradient_accumulation_steps": 4, "steps_per_generation": steps, **trl})


@pytest.mark.parametrize(
    ("config", "world_size", "path", "numbers"),
    [
        # 63·8 = 504 is no multiple of the update's 256; 32·8 = 256 and 64·8 = 512 are
        (in_words(63, 256, per_device_train_batch_size=16), 4, "algorithm.prompts_per_rollout", [32, 64]),
        (in_words(64, 200), 4, "algorithm.sequences_per_update", [192, 224]),  # micro-batches of 8·4
        # micro-batches of 4 in updates of 16: whole groups of 6 need 48 sequences
        (accumulated(4, num_generations=6, per_device_train_batch_size=4), 1, "trl.steps_per_generation", [12]),
        (run({"generation_batch_size": 100}), 2, "trl.generation_batch_size", [96, 112]),
    ],
)
def test_what_cannot_be_cut_names_the_nearest_numbers_that_can(
    config: RunConfig, world_size: int, path: str, numbers: list[int]
) -> None:
    with pytest.raises(Refusal) as caught:
        batch_plan(config, world_size)
    (problem,) = caught.value.problems
    assert (problem.key, problem.code, named(caught.value)) == (path, "cut", numbers)


@pytest.mark.parametrize(
    ("config", "path", "code"),
    [
        (run({"steps_per_generation": 1, "generation_batch_size": 8}), "trl.generation_batch_size", "cut-twice"),
        (in_words(8, 16, steps_per_generation=8), "trl.steps_per_generation", "cut-twice"),
        (run({}, algorithm={"prompts_per_rollout": 8}), "algorithm.prompts_per_rollout", "cut-by-half"),
        (run({}, num_processes=8), "num_processes", "other-number-of-processes"),
    ],
)
def test_a_batch_that_is_cut_twice_or_by_half_is_refused(config: RunConfig, path: str, code: str) -> None:
    with pytest.raises(Refusal) as caught:
        batch_plan(config, 2)
    assert [(each.key, each.code) for each in caught.value.problems] == [(path, code)]


CPU = {"use_cpu": True, "bf16": False}


def test_grpo_config_takes_trl_verbatim_and_the_rest_from_its_sections(tmp_path: Path) -> None:
    arguments = grpo_config(
        run(
            {**CPU, "learning_rate": 3e-7, "temperature": 4, "lr_scheduler_kwargs": {"num_cycles": 2}, "save_steps": 5},
            output_dir=str(tmp_path),
            seed=7,
            model={"name_or_path": "m", "dtype": "float32", "revision": "abc", "trust_remote_code": True},
            rewards=[{"verifier": "a", "weight": 0.5}, {"verifier": "b"}],
            algorithm={"prompts_per_rollout": 4, "sequences_per_update": 16},
            evaluation={"batch_size": 5},
            logging={"report_to": ["tensorboard"]},
        ),
        world_size=1,
    )
    assert str((arguments.learning_rate, arguments.temperature, arguments.save_steps)) == "(3e-07, 4.0, 5)"
    assert arguments.lr_scheduler_kwargs == {"num_cycles": 2}
    assert (arguments.generation_batch_size, arguments.steps_per_generation) == (32, 4)
    assert arguments.gradient_accumulation_steps == 2
    assert (arguments.output_dir, arguments.run_name, arguments.seed) == (str(tmp_path), "run-s7", 7)
    assert arguments.report_to == ["tensorboard"]
    assert arguments.reward_weights == [0.5, 1.0]
    assert arguments.model_init_kwargs == {"dtype": "float32", "revision": "abc"}
    assert arguments.trust_remote_code is True
    assert arguments.per_device_eval_batch_size == 5
    assert (arguments.eval_strategy, arguments.log_completions, arguments.remove_unused_columns) == ("no", False, False)


def test_what_trl_refuses_is_a_configuration_error(tmp_path: Path) -> None:
    config = run({**CPU, "auto_find_batch_size": True}, output_dir=str(tmp_path))
    with pytest.raises(Refusal, match="auto_find_batch_size") as caught:
        grpo_config(config, world_size=1)
    assert caught.value.code == "refused-by-trl"


def test_lora_is_peft_s_own_configuration() -> None:
    assert lora_config(run({})) is None
    lora = lora_config(run({}, model={"name_or_path": "m", "lora": {"r": 4, "target_modules": "all-linear"}}))
    assert lora is not None
    assert (lora.r, lora.target_modules, lora.task_type) == (4, "all-linear", "CAUSAL_LM")
    for unread, said in (({"kasa_config": {"alhpa": 1}}, "holds alhpa, which"), ({"loftq_config": "2"}, "'2', which")):
        with pytest.raises(Refusal, match=f"{said} peft would not read"):
            lora_config(run({}, model={"name_or_path": "m", "lora": unread}))
