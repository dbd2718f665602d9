"""Evaluation of a real tiny model: what is drawn, that nothing counts twice, and that training is left alone."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.evaluation import Decoding, decodings
from evenkeel.trainer.evaluation.decoding import draws_of_rank
from evenkeel.trainer.step.options import Evaluation
from tests.trainer.training import made

WORDS = "abcdefghi"
ROWS = Dataset.from_dict(
    {
        "prompt": [[{"role": "user", "content": f"{a} {b}"}] for a in WORDS for b in WORDS][:11],
        "reference": list(range(11)),
        "group": ["9", "10"] * 5 + ["9"],
    }
)


def parity(
    completions: list[Any], reference: list[int], log_extra: Any, log_metric: Any, trainer_state: Any, **_: Any
) -> list[float]:
    """Right when the number of words has the reference's parity; row 3 cannot be scored, and NaN says so."""
    assert trainer_state.global_step <= trainer_state.max_steps
    counts = [len(completion[0]["content"].split()) for completion in completions]
    correct = [None if r == 3 else count % 2 == r % 2 for count, r in zip(counts, reference, strict=True)]
    for value in correct:  # TRL too takes them one by one, and numbers for texts
        log_extra("correct", [value])
    log_extra("parity/answer", [count % 2 for count in counts])
    log_extra("parity/reason", ["counted"] * len(counts))
    for value in correct:
        if value is not None:
            log_metric("verifier/accuracy", float(value))
    return [float("nan") if value is None else float(value) for value in correct]


def evaluator(model: Path, folder: Path, wanted: list[Decoding], seed: int = 5, **settings: Any) -> RLVRTrainer:
    sizes = {"num_generations_eval": 1, "per_device_eval_batch_size": 4}
    given = {"eval_dataset": ROWS, "evaluation": Evaluation(seed, wanted)}
    trainer: RLVRTrainer = made(
        RLVRTrainer, model, folder, reward=parity, rows=ROWS, strategies=given, **sizes, **settings
    )
    return trainer


def test_every_row_is_answered_as_often_as_asked_and_counted_once(tiny_model: Path, tmp_path: Path):
    trainer = evaluator(tiny_model, tmp_path, decodings(3, None, True))
    before = random.getstate(), str(np.random.get_state())
    metrics = trainer.evaluate()
    assert (random.getstate(), str(np.random.get_state())) == before
    (result,) = trainer.parts.held_out.newest
    torch.manual_seed(9)
    assert {name: metrics[name] for name in metrics if "second" not in name}.items() <= trainer.evaluate().items()
    sampled = Counter(record["item"] for record in result.records if not record["greedy"])
    assert sampled == dict.fromkeys(range(11), 3)
    assert sorted(record["item"] for record in result.records if record["greedy"]) == list(range(11))

    scored = [record["correct"] for record in result.records if not record["greedy"] and record["item"] != 3]
    assert metrics["eval_test/avg@3"] == pytest.approx(sum(scored) / 30)
    assert metrics["eval_verifier/accuracy"] == pytest.approx(sum(scored) / 30)
    assert metrics["eval_reward"] == pytest.approx(sum(scored) / 30)
    assert {"eval_test/pass@2", "eval_test/pass@3", "eval_test/maj@3", "eval_test/greedy"} <= metrics.keys()
    assert metrics["eval_test/pass@3"] >= metrics["eval_test/pass@2"] >= metrics["eval_test/avg@3"]
    assert [*result.groups] == ["9", "10"]
    for record in result.records:
        assert record["num_tokens"] == 8 if record["truncated"] else record["num_tokens"] <= 8
        assert record["answer"] == str(len(record["completion"].split()) % 2)
    summary = result.summary()
    assert summary["frac_unscored"] == pytest.approx(1 / 11)
    assert (summary["n_items"], summary["k"], summary["by_group"]["9"]["n_items"]) == (11, 3, 6)
    assert summary["tokens_per_second"] > 0
    with pytest.raises(ValueError, match="'test' has no rows"):
        trainer.evaluate(ROWS.select([]))


def test_a_temperature_near_0_is_greedy_and_the_next_training_batch_is_sampled_as_before(tiny_model, tmp_path: Path):
    trainer = evaluator(tiny_model, tmp_path, [Decoding(2, 1e-4), Decoding(greedy=True)])
    before = trainer.generation_config, trainer.generation_kwargs
    trainer.evaluate()
    assert (trainer.generation_config, trainer.generation_kwargs) == before
    (result,) = trainer.parts.held_out.newest
    greedy = {record["item"]: record["completion"] for record in result.records if record["greedy"]}
    assert [record["completion"] for record in result.records] == [greedy[r["item"]] for r in result.records]
    tokenizer, model = trainer.processing_class, trainer.model
    prompt = tokenizer.apply_chat_template(ROWS[0]["prompt"], add_generation_prompt=True, return_tensors="pt")
    written = model.generate(**prompt, max_new_tokens=8, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    assert tokenizer.decode(written, skip_special_tokens=True) == greedy[0]


def test_evaluating_changes_nothing_that_is_trained(tiny_model: Path, tmp_path: Path):
    wanted = decodings(2, 0.7, True)
    weights = []
    for strategy in ({}, {"eval_strategy": "steps", "eval_steps": 1}):
        trainer = evaluator(tiny_model, tmp_path, wanted, max_steps=3, **strategy)
        trainer.train()
        weights.append(torch.cat([parameter.flatten() for parameter in trainer.model.parameters()]))
    assert torch.equal(*weights)
    evaluated = [entry for entry in trainer.state.log_history if "eval_test/avg@2" in entry]
    assert [entry["step"] for entry in evaluated] == [1, 2, 3]


@pytest.mark.parametrize(
    ("items", "samples", "size", "world"), [(11, 3, 4, 1), (11, 3, 4, 2), (1, 1, 64, 4), (30, 1, 256, 1)]
)
def test_ranks_take_the_same_steps_and_draw_everything_once(items: int, samples: int, size: int, world: int):
    ranks = [draws_of_rank(items, samples, size, rank, world) for rank in range(world)]
    shapes = {tuple(len(batch) for batch in batches) for batches in ranks}
    assert len(shapes) == 1
    assert max(*shapes.pop(), 0) <= size
    drawn = [draw for batches in ranks for batch in batches for draw in batch]
    real = Counter((draw.item, draw.sample) for draw in drawn if not draw.padding)
    assert real == {(item, sample): 1 for item in range(items) for sample in range(samples)}
    assert len(drawn) - len(real) < len(ranks[0]) * world  # padding fills no batch that could be left out
