"""Rollout batches that are written k batches before they are trained: which, by which policy, and after a resume."""

from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

from evenkeel.errors import Refusal
from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.checkpoint import FILE
from evenkeel.trainer.step.metrics import Means, add_lag
from evenkeel.trainer.step.options import Schedule
from tests.trainer.training import max_difference, moved, train

SETTINGS: dict[str, Any] = {"max_steps": 6, "loss_type": "dapo", "learning_rate": 1e-3}
TWO_STEPS = {"per_device_train_batch_size": 4, "steps_per_generation": 2, "max_steps": 12}


class Noting(RLVRTrainer):
    """Keeps what was written: number, optimizer steps of the policy, prompts, batch."""

    def _rollout(self, inputs: Any) -> Any:
        made = super()._rollout(inputs)
        prompts = [row["prompt"][-1]["content"] for row in inputs]
        vars(self).setdefault("seen", []).append((self._position.rollout, made.step, prompts, dict(made.batch)))
        return made


def trained(
    model: Path, folder: Path, staleness: int, strategies: dict[str, Any] | None = None, **settings: Any
) -> Any:
    speed = {"staleness": staleness, **(strategies or {})}
    return train(Noting, model, folder, strategies=speed, **{**SETTINGS, **settings})


def lines(trainer: Any) -> list[dict[str, float]]:
    """What was logged, without times."""
    return [
        {name: value for name, value in line.items() if "tim" not in name and not name.endswith(("_s", "_second"))}
        for line in trainer.state.log_history
    ]


def test_each_batch_is_trained_at_its_place_on_its_prompts_and_written_k_batches_before(
    tiny_model: Path, tmp_path: Path
):
    """4 batches an epoch, so that the order goes over its end; the run's last batch is the last that is written."""
    fresh, stale = (trained(tiny_model, tmp_path / str(k), k) for k in (0, 2))
    assert [seen[:2] for seen in fresh.seen] == [(number, number) for number in range(6)]
    assert [seen[:2] for seen in stale.seen] == [(0, 0), (1, 0), (2, 0), (3, 1), (4, 2), (5, 3)]
    assert [seen[2] for seen in fresh.seen] == [seen[2] for seen in stale.seen]
    assert [line["lag/rollout_batches"] for line in lines(stale)[:-1]] == [0, 1, 2, 2, 2, 2]
    tokens = [line["num_tokens"] for line in lines(stale)[:-1]]
    assert tokens == sorted(tokens)
    assert {*lines(stale)[3]} - {*lines(fresh)[3]} >= {"lag/ratio/frac_tail", "lag/ratio/max"}
    assert max_difference(fresh, stale) > 0


def test_the_ratio_is_of_the_policy_that_wrote_the_batch(tiny_model: Path, tmp_path: Path):
    """On-policy TRL has no π_old. Here every batch is the initial policy's, which is loaded anew to score them."""
    seen: list[dict[str, Any]] = []

    def noted(logps: Any, old_logps: Any, log_ratio: Any, mask: Any, completion_ids: Any, step: Any) -> Any:
        seen.append({"old": old_logps, "ratio": log_ratio * mask, "mask": mask, "ids": completion_ids, "step": step})
        return log_ratio.exp() if step else torch.ones_like(logps)

    strategies = {"advantage": "dr_grpo", "coefficient": noted}
    trainer = trained(tiny_model, tmp_path, 9, strategies, loss_type="cispo", max_steps=3)
    assert moved(trainer, tiny_model) > 0
    seen = [each for each in seen if each["ids"].shape[0] == 8 and each["mask"].device.type == "cpu"][-3:]
    assert [each["step"] for each in seen] == [0, 1, 2]
    assert seen[0]["ratio"].abs().max() == 0
    policy = AutoModelForCausalLM.from_pretrained(tiny_model).eval()
    for (_, step, _, batch), each in zip(trainer.seen, seen, strict=True):
        assert step == 0
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        width = batch["completion_ids"].shape[1]
        logits = policy(ids, attention_mask=mask).logits[:, -width - 1 : -1].log_softmax(-1)
        logps = logits.gather(2, batch["completion_ids"][:, :, None])[:, :, 0] * batch["completion_mask"]
        old = batch["old_per_token_logps"] * batch["completion_mask"]
        torch.testing.assert_close(logps, old, atol=1e-5, rtol=0)
        order = [batch["completion_ids"].tolist().index(row) for row in each["ids"].tolist()]
        torch.testing.assert_close(each["old"] * each["mask"], old[order])
    assert all(each["ratio"].abs().max() > 1e-4 for each in seen[1:])


@pytest.mark.parametrize(
    ("strategies", "settings", "checkpoints"),
    [
        ({}, {}, [3]),
        pytest.param({}, {}, [1, 2, 4, 5], marks=pytest.mark.slow),
        pytest.param(
            {"update_schedule": "lopti", "microbatches": "planned", "prompt_sampler": "dynamic"},
            {**TWO_STEPS, "beta": 0.04, "max_steps": 24},
            [4, 8, 12, 16, 20],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"token_weight": "adv_reweight", "generation": "compact", "common_random_numbers": True},
            {**TWO_STEPS, "num_iterations": 2, "max_steps": 24},
            [4, 12, 20],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_run_killed_at_any_checkpoint_goes_on_exactly(
    tiny_model: Path, tmp_path: Path, strategies: dict[str, Any], settings: dict[str, Any], checkpoints: list[int]
):
    settings = {**settings, "save_strategy": "steps", "save_steps": 4 if settings else 1}
    straight = trained(tiny_model, tmp_path / "straight", 2, strategies, **settings)
    for step in checkpoints:
        checkpoint = tmp_path / "straight" / f"checkpoint-{step}"
        torch.manual_seed(99)
        resumed = trained(
            tiny_model, tmp_path / str(step), 2, strategies, resume_from_checkpoint=str(checkpoint), **settings
        )
        assert max_difference(straight, resumed) == 0.0
        assert lines(straight)[step:-1] == lines(resumed)[step:-1]
        again = [seen[:2] for seen in vars(resumed).get("seen", [])]
        assert again == [seen[:2] for seen in straight.seen if seen[1] >= step]


def test_a_queue_is_trained_to_its_end_and_that_of_other_processes_refused(tiny_model: Path, tmp_path: Path):
    settings = {"save_strategy": "steps", "save_steps": 2, "max_steps": 4}
    trained(tiny_model, tmp_path / "run", 2, **settings)
    checkpoint = tmp_path / "run" / "checkpoint-2"
    settings |= {"resume_from_checkpoint": str(checkpoint)}
    fresh = trained(tiny_model, tmp_path / "fresh", 0, **settings)  # what is in the queue is trained, and then no more
    assert [line["lag/rollout_batches"] for line in lines(fresh)[2:-1] if "lag/rollout_batches" in line] == [2, 2]
    other = torch.load(checkpoint / FILE, weights_only=True)
    torch.save({**other, "queues": 2}, checkpoint / FILE)
    with pytest.raises(Refusal, match="that 2 processes have written ahead") as refused:
        trained(tiny_model, tmp_path / "other", 2, **settings)
    assert refused.value.code == "queue"


def test_batches_of_a_run_are_counted_where_an_epoch_ends_inside_a_step():
    """3 batches of 2 micro-batches an epoch, 4 micro-batches a step: so of batches 0 1 | 2 | 3 4 | 5."""
    schedule = Schedule(steps_per_generation=2, accumulated=4, num_iterations=1, num_passes=1)
    assert [schedule.rollouts_begun(steps, per_epoch=3) for steps in range(5)] == [0, 2, 3, 5, 6]
    several = Schedule(steps_per_generation=4, accumulated=2, num_iterations=2, num_passes=1)  # 4 steps a batch
    assert [several.rollouts_begun(steps, per_epoch=2) for steps in (1, 4, 5, 8, 9)] == [1, 1, 2, 2, 3]


def test_what_the_lag_does_is_measured_over_micro_batches():
    """Ratios ½, 1 | 4, and padding: one of three is outside [½, 2]."""
    means = Means()
    add_lag(means, torch.tensor([[0.5, 1.0]]).log(), torch.tensor([[1, 1]]))
    add_lag(means, torch.tensor([[4.0, 100.0]]).log(), torch.tensor([[1, 0]]))
    add_lag(means, torch.tensor([[7.0, 100.0]]).log(), torch.tensor([[0, 0]]))
    found = means.read(Accelerator(cpu=True))
    assert found["lag/ratio/frac_tail"] == pytest.approx(1 / 3)
    assert found["lag/ratio/max"] == 4.0
