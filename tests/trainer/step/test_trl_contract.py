"""What `RLVRTrainer` assumes about TRL, one assumption a test, so that an upgrade breaks here and by name."""

import dataclasses
import inspect
import re
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import trl.trainer.grpo_trainer as grpo_trainer
from packaging.requirements import Requirement
from trl import GRPOConfig, GRPOTrainer
from trl.trainer.utils import RepeatSampler, shuffle_sequence_dict, split_tensor_dict

from evenkeel.trainer import RLVRTrainer, step
from evenkeel.trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN
from evenkeel.trainer.step.rollout import EpochSampler
from tests.trainer.step.test_trainer import ROWS, ready

SEAMS = {
    "_calculate_rewards": ["self", "inputs", "prompts", "completions", "completion_ids_list"],
    "_generate_and_score_completions": ["self", "inputs"],
    "_compute_loss": ["self", "model", "inputs"],
    "_prepare_inputs": ["self", "generation_batch"],
    "_get_train_sampler": ["self", "dataset"],
    "_generate_single_turn": [
        "self",
        "prompt_ids",
        "images",
        "multimodal_fields",
        "num_generations",
        "has_tool_images",
    ],
}
READ_SETTINGS = {
    "scale_rewards",
    "multi_objective_aggregation",
    "num_iterations",
    "steps_per_generation",
    "gradient_accumulation_steps",
    "loss_type",
    "importance_sampling_level",
    "entropy_coef",
    "use_adaptive_entropy",
    "beta",
    "top_entropy_quantile",
    "off_policy_mask_threshold",
    "use_vllm",
    "vllm_importance_sampling_mode",
    "save_strategy",
    "save_steps",
}


def test_another_trl_is_warned_of():
    supported = Requirement("trl>=1.16,<1.17")
    step.check_trl("1.16.4", supported)
    with pytest.warns(UserWarning, match=r"TRL 1\.17\.0\.dev0 has not been tested.*pip install 'trl<1.17,>=1.16'"):
        step.check_trl("1.17.0.dev0", supported)


@pytest.mark.parametrize("name", SEAMS)
def test_overridden_methods_take_the_arguments_we_pass_on(name: str):
    assert list(inspect.signature(getattr(GRPOTrainer, name)).parameters) == SEAMS[name]


def test_the_logps_method_begins_with_the_five_arguments_we_rely_on():
    parameters = list(inspect.signature(GRPOTrainer._get_per_token_logps_and_entropies).parameters)
    assert parameters[:5] == ["self", "model", "input_ids", "attention_mask", "logits_to_keep"]


def test_prompts_alone_make_their_tokens_in_the_first_place_of_what_a_teacher_reads():
    assert list(inspect.signature(GRPOTrainer._tokenize_prompts).parameters) == ["self", "prompts"]
    assert inspect.getsource(GRPOTrainer._tokenize_prompts).rstrip().splitlines()[-1].split()[:2] == [
        "return",
        "prompt_ids,",
    ]


def test_every_setting_that_preflight_reads_exists():
    assert {field.name for field in dataclasses.fields(GRPOConfig)} >= READ_SETTINGS


def test_every_loss_type_of_trl_is_classified():
    """A new loss type must be put into `trainer.algorithms.sequence_weights`, or named among those without a weight."""
    source = inspect.getsource(GRPOTrainer._compute_loss)
    lists = re.findall(r"self\.loss_type (?:in \[([^\]]*)\]|== (\"\w+\"))", source)
    named = {name for group in lists for name in re.findall(r"\"(\w+)\"", "".join(group))}
    assert named == PER_SEQUENCE_MEAN | ONE_DENOMINATOR | {"bnpo", "vespo"}


def test_the_loss_reads_the_advantages_after_the_logps():
    """On-policy, token weights are applied when the log-probabilities are known: the body must read them later."""
    source = inspect.getsource(GRPOTrainer._compute_loss)
    assert source.index("self._get_per_token_logps_and_entropies(") < source.index('inputs["advantages"]')
    assert source.index('"tool_mask" not in inputs') < source.index("self._get_per_token_logps_and_entropies(")


def test_what_a_scored_batch_holds(tiny_model: Path, tmp_path: Path):
    on_policy = ready(tiny_model, tmp_path, loss_type="dapo")
    batch = on_policy._generate_and_score_completions(ROWS)
    shape = batch["completion_ids"].shape
    assert shape[0] == 8
    assert batch["completion_mask"].shape == shape
    assert batch["advantages"].shape == (8,)
    assert "old_per_token_logps" not in batch
    stored = ready(tiny_model, tmp_path, loss_type="dapo", update_schedule="lopti")
    batch = stored._generate_and_score_completions(ROWS)
    assert batch["old_per_token_logps"].shape == batch["completion_ids"].shape


def test_token_level_advantages_are_shuffled_and_split_with_their_rows():
    rows = torch.arange(6)
    batch = {"completion_ids": rows[:, None].repeat(1, 3), "advantages": rows[:, None].repeat(1, 3).float()}
    torch.manual_seed(3)
    shuffled = shuffle_sequence_dict(batch)
    assert not torch.equal(shuffled["completion_ids"], batch["completion_ids"])
    for part in split_tensor_dict(shuffled, 2):
        assert part["advantages"].shape == (3, 3)
        assert torch.equal(part["advantages"].long(), part["completion_ids"])


def test_the_samplers_order_at_epoch_e_is_the_stock_samplers_eth_pass():
    stock = RepeatSampler(range(10), mini_repeat_count=2, batch_size=3, repeat_count=2, seed=4)
    passes = [list(stock) for _ in range(3)]
    assert passes[0] != passes[1]
    ours = EpochSampler(RepeatSampler(range(10), mini_repeat_count=2, batch_size=3, repeat_count=2, seed=4))
    for epoch in (2, 0, 1):  # also when a run resumes in a later epoch
        ours.set_epoch(epoch)
        assert list(ours) == passes[epoch]
    assert len(ours) == len(stock)


def test_unscorable_rows_are_those_that_no_function_scored():
    assert "torch.isnan(rewards_per_func).all(dim=1)" in inspect.getsource(grpo_trainer)


def test_generation_works_on_an_object_made_without_its_constructor():
    """As TRL's own tests call them (`TestGRPORolloutDispatch`), with what TRL's methods read and nothing of ours."""
    trainer = object.__new__(RLVRTrainer)
    trainer.accelerator = SimpleNamespace(device=torch.device("cpu"), is_main_process=True, gather=lambda t: t)
    trainer.args = SimpleNamespace(report_to=[])
    trainer.model = SimpleNamespace(training=True)
    trainer.state = SimpleNamespace(global_step=2, num_input_tokens_seen=0)
    trainer.use_vllm = trainer.use_transformers_continuous_batching = False
    trainer._tokenizer = SimpleNamespace(eos_token_id=2, pad_token_id=0)
    trainer.processing_class = SimpleNamespace(batch_decode=lambda *_, **__: ["decoded"])
    trainer.eos_token_ids, trainer._last_loaded_step = [2], 1
    trainer.tools, trainer._metrics = None, {"train": defaultdict(list)}
    answer = {"prompt_ids": [[1]], "completion_ids": [[2]], "logprobs": [[-0.1]], "env_mask": [[1]]}
    trainer.rollout_func = lambda prompts, asking: answer
    assert trainer._generate(["prompt"])[:3] == ([[1]], [[2]], [[1]])
