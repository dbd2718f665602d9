"""Replayed gradients are those of training; strategies that are one another in disguise measure as such."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from evenkeel.errors import Refusal
from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.lab.gradients.bench import bench
from evenkeel.trainer.lab.gradients.contributions import Recipe, passes
from evenkeel.trainer.lab.gradients.replay import group_gradients, replayed
from evenkeel.trainer.lab.gradients.sketch import CountSketch
from evenkeel.trainer.lab.gradients.strategies import Named, named_strategies, named_strategy
from tests.trainer.step.test_trainer import gradient, ready

RECIPE = Recipe(4, 1.0, {"digits": 1.0}, 10, "dapo", 8)


def rows_of(batch: int, seed: int, groups: int = 3) -> list[dict[str, Any]]:
    """A recorded batch of the tiny model's words; the first token of a group is shared, rewards are 0 or 1."""
    random = torch.Generator().manual_seed(seed)
    rows = []
    for place in range(groups * 4):
        length = int(torch.randint(3, 7, (1,), generator=random))
        ids = [7 + place // 4, *torch.randint(5, 24, (length - 1,), generator=random).tolist()]
        reward = float(place % 4 < 1 + place // 4)
        rows.append(
            {
                "batch": batch,
                "step": 0,
                "group": place // 4,
                "prompt_ids": [3, 5 + place // 4, 4],
                "completion_ids": ids,
                "mask": None,
                "reward": reward,
                "rewards/digits": reward,
                "correct": bool(reward),
                "others": None,
                "old_logps": None,
            }
        )
    return rows


def run(model: Any, names: str | list[Named], loss: str = "dapo", batches: int = 2) -> dict[str, Any]:
    strategies = named_strategies(names) if isinstance(names, str) else names
    found = bench([rows_of(b, b) for b in range(batches)], model, replace(RECIPE, loss_type=loss), strategies)
    return {row.name: row for row in found.rows} | {"all": found}


def flat(model: Any, batch: Any, contributions: torch.Tensor) -> torch.Tensor:
    sketch = CountSketch([p.numel() for p in model.parameters()])
    parts = group_gradients(batch, contributions[None], model, RECIPE, sketch)
    return sum((c.float() @ j).sum(0) for c, j in parts)


@pytest.mark.parametrize(("loss", "name"), [("grpo", "grpo"), ("dapo", "adv_reweight"), ("dr_grpo", "dr_grpo")])
def test_the_gradient_is_the_trainers(model: Any, tiny_model: Path, tmp_path: Path, loss: str, name: str):
    """TRL's own loss on the same rows, one optimizer step, differentiated in `RLVRTrainer`."""
    rows = rows_of(0, 0, groups=2)
    batch = replayed(rows, RECIPE, model)
    parts = named_strategy(name).parts
    (contributions,) = passes(parts, batch, replace(RECIPE, loss_type=loss))
    keyword = "token_weight" if name == "adv_reweight" else "advantage"
    trainer = ready(tiny_model, tmp_path, loss_type=loss, **{keyword: name})
    advantages = parts.advantage({"rewards": batch.rewards, "group_size": 4})
    inputs = {
        "prompt_ids": torch.tensor([row["prompt_ids"] for row in rows]),
        "prompt_mask": torch.ones(8, 3, dtype=torch.long),
        "completion_ids": batch.completion_ids,
        "completion_mask": batch.mask,
        "advantages": advantages,
        "num_items_in_batch": batch.mask.sum(),
        "groups": torch.arange(8) // 4,
        "scored": torch.ones(8, dtype=torch.bool),
        "shared_prefix": torch.zeros(8, dtype=torch.long),
    }
    theirs = gradient(trainer, inputs)
    mine = flat(model, batch, contributions)
    assert float(mine.norm()) > 1e-3
    assert torch.allclose(-mine, theirs, atol=1e-6)


def test_grpo_twice_is_one_gradient_and_no_reweighting_is_the_baseline(model: Any):
    twice = Named("again", build_strategies("grpo"))
    still = Named("still", build_strategies(token_weight={"name": "adv_reweight", "alpha": 0.0}))
    found = run(model, [twice, still])
    for name in ("again", "still"):
        assert found[name].cosine == pytest.approx(1.0, abs=1e-6)
        assert found[name].norm == pytest.approx(1.0, abs=1e-6)
        assert found[name].signal_to_noise == pytest.approx(found["grpo"].signal_to_noise, rel=1e-5)
    assert found["all"].cosines[1][2] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", ["lopti", "adv_reweight+lopti", "rloo+lopti"])
def test_loptis_passes_add_up_to_the_joint_gradient(model: Any, name: str):
    joint = named_strategy(name.removesuffix("+lopti") if "+" in name else "grpo")
    batch = replayed(rows_of(0, 0), RECIPE, model)
    first, second = passes(named_strategy(name).parts, batch, RECIPE)
    (whole,) = passes(joint.parts, batch, RECIPE)
    assert torch.equal((first != 0) & (second != 0), torch.zeros_like(first, dtype=torch.bool))
    sum_of_passes = flat(model, batch, first) + flat(model, batch, second)
    assert torch.allclose(sum_of_passes, flat(model, batch, whole), atol=1e-6)
    assert run(model, name)[name].passes == 2


def test_leave_one_out_with_one_denominator_is_the_gradient_of_p_correct(model: Any):
    found = run(model, "rloo,grpo", loss="luspo", batches=12)
    assert found["rloo"].alignment == pytest.approx(1.0, abs=1e-5)
    everything = found["all"]
    assert (everything.batches, everything.groups) == (12, 36)


def test_what_cannot_be_replayed_is_named(model: Any):
    asked = Named("curious", build_strategies("tests.trainer.lab.gradients.test_bench:curious"))
    found = run(model, [asked])
    assert list(found) == ["grpo", "all"]
    assert len(named_strategies("all")) > 50  # each can be built with its defaults
    assert "which rollouts do not record" in found["all"].absent["curious"]
    with pytest.raises(PartError, match="both of the kind advantage"):
        named_strategy("rloo+grpo")
    with pytest.raises(Refusal, match="whole groups"):
        replayed(rows_of(0, 0)[:-1], RECIPE, model)
    with pytest.raises(Refusal, match="fewer than two groups"):
        bench([], model, RECIPE, [asked])
    with pytest.raises(PartError, match="vespo"):
        run(model, [asked], loss="vespo")


def test_turns_are_replayed_as_they_were_paid(model: Any):
    rows = rows_of(0, 0)
    for row in rows:
        row["mask"] = [place != 1 for place in range(len(row["completion_ids"]))]  # a tool wrote the second token
        row["others"] = json.dumps({"turn_rewards": [row["group"] / 2, None], "state_keys": ["closed", "open"]})
    batch = replayed(rows, RECIPE, model)
    assert batch.columns["turn_rewards"].tolist() == [[row["group"] / 2, 0.0] for row in rows]
    (contributions,) = passes(named_strategy("gigpo").parts, batch, RECIPE)
    (of_grpo,) = passes(named_strategy("dr_grpo").parts, batch, RECIPE)
    torch.testing.assert_close(contributions[:, 2:], 2 * of_grpo[:, 2:])  # the last turn earns the outcome
    torch.testing.assert_close(contributions[:, 0], 1.95 * of_grpo[:, 0])  # γ = .95
    assert (contributions[:, 1] == 0).all()


def curious(rewards: torch.Tensor, hints: torch.Tensor, group_size: int) -> torch.Tensor:
    """An estimator that asks for a column which nothing records."""
    return rewards - rewards.view(-1, group_size).nanmean(1).repeat_interleave(group_size) + 0 * hints
