"""Common random numbers: completions depend on weights and keys alone, and training stays training."""

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from scipy.stats import chisquare

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.evaluation.decoding import Decoding
from evenkeel.trainer.step.generation import compact_generation
from tests.trainer.training import PROMPTS, begun, digit_reward, made, ours

COMMON = {"generation": "compact", "common_random_numbers": True}
SETTINGS: dict[str, Any] = {"max_completion_length": 16, "max_steps": 2, "num_generations": 4, "beta": 0.0}


@pytest.fixture(scope="module")
def common(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return begun(made(RLVRTrainer, tiny_model, tmp_path_factory.mktemp("common"), strategies=COMMON, **SETTINGS))


def completions(trainer: Any, prompts: list[str], *, stream: int = 0) -> list[list[int]]:
    """Of a new rollout batch; ``stream`` is where torch's own noise stands."""
    trainer.parts.common_noise.start_over()
    torch.manual_seed(stream)
    ids: list[list[int]] = trainer._generate(prompts)[1]
    return ids


def recording(batches: list[list[list[int]]]) -> Any:
    """`digit_reward` that keeps the token ids of each batch it judges."""

    def reward(completions: list[Any], completion_ids: list[list[int]], **columns: Any) -> list[float | None]:
        batches.append(completion_ids)
        return digit_reward(completions, **columns)

    return reward


def test_the_stream_has_no_part_in_it(common: Any):
    first = completions(common, ["a b", "c", "a b", "d e f"])
    assert first == completions(common, ["a b", "c", "a b", "d e f"], stream=7)
    assert first[0] != first[2]  # two samples of one prompt


def test_rounds_of_one_batch_go_on_counting(common: Any):
    together = completions(common, ["a b"] * 4 + ["c"] * 2)
    halves = completions(common, ["a b", "a b", "c"])
    halves += common._generate(["a b", "a b", "c"])[1]
    assert [halves[row] for row in (0, 1, 3, 4, 2, 5)] == together


def test_the_first_token_has_the_policys_distribution(common: Any):
    prompts = common._tokenize_prompts(["a b"])[0] * 2000
    with torch.no_grad():
        logits = common.model(torch.tensor(prompts[:1])).logits[0, -1]
    for temperature, top_p in ((1.0, 1.0), (0.6, 1.0), (1.0, 0.7)):
        probs = (logits / temperature).double().softmax(-1)
        order = probs.argsort(descending=True)
        kept = order[: int((probs[order].cumsum(0) < top_p).sum()) + 1]
        expected = torch.zeros_like(probs).index_copy_(0, kept, probs[kept] / probs[kept].sum())
        common.parts.common_noise.start_over()
        batch = {"input_ids": torch.tensor(prompts), "attention_mask": torch.ones(2000, len(prompts[0]))}
        wanted = {"max_new_tokens": 1, "do_sample": True, "temperature": temperature, "top_p": top_p}
        with compact_generation(common.model, common.parts.common_noise.draw(prompts, 0)):
            tokens = common.model.generate(**batch, **wanted, top_k=0, pad_token_id=0, eos_token_id=[1])[:, -1]
        counts = tokens.bincount(minlength=len(probs))
        assert int(counts[expected == 0].sum()) == 0
        assert chisquare(counts[expected > 0].numpy(), (2000 * expected[expected > 0]).numpy()).pvalue > 1e-4


def test_how_a_batch_is_cut_has_no_part_in_it(tiny_model: Path, tmp_path: Path):
    seen: list[list[list[list[int]]]] = []
    for size in (8, 4):
        seen.append([])
        cut = {"per_device_train_batch_size": size, "gradient_accumulation_steps": 8 // size}
        settings = {**SETTINGS, **cut, "learning_rate": 0.0}
        ours(tiny_model, tmp_path / str(size), strategies=COMMON, reward=recording(seen[-1]), **settings)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 2


def test_evaluations_share_their_noise(tiny_model: Path, tmp_path: Path):
    answered = []
    for batch_size in (16, 4):
        given: dict[str, Any] = {"strategies": {**COMMON, "decodings": [Decoding(2)]}, **SETTINGS}
        given["per_device_eval_batch_size"] = batch_size
        trainer = made(RLVRTrainer, tiny_model, tmp_path / str(batch_size), **given)
        for stream in (0, 5):
            torch.manual_seed(stream)
            trainer.evaluate(Dataset.from_list(PROMPTS))
            (found,) = trainer.parts.held_out.newest
            answered.append(sorted((record["item"], record["completion"]) for record in found.records))
    assert answered[0] == answered[1] == answered[2] == answered[3]
