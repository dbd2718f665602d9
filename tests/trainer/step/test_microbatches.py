"""Planned micro-batches: the accumulated gradient of every optimizer step is that of TRL's cut, from fewer tokens."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.algorithms.contract import traits
from evenkeel.trainer.step.microbatches import _gradient, comparisons_due, microbatches_over_all_ranks
from tests.paths import ROOT
from tests.trainer.step.test_trainer import perturb
from tests.trainer.training import PROMPTS, begun, digit_reward, made, max_difference, moved, ours

LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "vespo", "luspo")


def trainer_with(model: Path, folder: Path, strategies: dict[str, Any] | None = None, **settings: Any) -> RLVRTrainer:
    """On the verge of its first step; two micro-batches of eight rows are an optimizer step unless told otherwise."""
    given = {"microbatches": "planned", "verify_steps": 0, **(strategies or {})}
    defaults: dict[str, Any] = {"gradient_accumulation_steps": 2, "max_completion_length": 12}
    defaults["epsilon_high"] = 5.0 if settings.get("loss_type") == "cispo" else None
    trainer: RLVRTrainer = begun(made(RLVRTrainer, model, folder, strategies=given, **{**defaults, **settings}))
    return trainer


def rollout(trainer: RLVRTrainer, dead: str = "half") -> list[dict[str, Any]]:
    """The buffered micro-batches of one rollout batch with lengths from 1 to 12, half of its groups dead."""
    generator = torch.Generator().manual_seed(7)
    torch.manual_seed(0)
    original = RLVRTrainer._generate_and_score_completions
    num_rows = trainer.args.per_device_train_batch_size * trainer.args.steps_per_generation

    def of_many_lengths(self: RLVRTrainer, inputs: Any) -> dict[str, Any]:
        batch = original(self, inputs)
        lengths, device = torch.randint(1, 13, (num_rows,), generator=generator), self.accelerator.device
        counted = torch.arange(batch["completion_mask"].shape[1]) < lengths[:, None]
        batch["completion_mask"] *= counted.to(device)
        batch["num_items_in_batch"] = batch["completion_mask"].sum()
        if dead != "none":
            advantages = torch.randn(batch["advantages"].shape, generator=generator)
            groups = torch.arange(num_rows) // 4
            alive = groups % 2 == 0 if dead == "half" else torch.zeros(num_rows).bool()
            batch["advantages"] = (advantages * (alive if advantages.dim() == 1 else alive[:, None])).to(device)
        return batch

    trainer._generate_and_score_completions = of_many_lengths.__get__(trainer)  # type: ignore[method-assign]
    planner, trainer.parts.microbatches.planner = trainer.parts.microbatches.planner, None
    rows = [row for row in PROMPTS[: num_rows // 4] for _ in range(4)]
    trainer._prepare_inputs(rows)
    trainer.parts.microbatches.planner = planner
    perturb(trainer)
    return trainer._buffered_inputs


def tokens(cut: list[dict[str, Any]]) -> int:
    return sum(m["prompt_ids"].numel() + m["completion_ids"].numel() for m in cut)


def check(trainer: RLVRTrainer, *, dead: str = "half", fewer: float = 0.85) -> None:
    """The gradient of every optimizer step of every pass, to 1e-6 of its size, with a share of the tokens."""
    buffered, size = rollout(trainer, dead), trainer.parts.schedule.block
    assert trainer.parts.microbatches.planner is not None
    for pass_index in range(trainer.strategies.schedule.num_passes):
        for start in range(0, len(buffered), size):
            trainer._step = pass_index * len(buffered) + start
            stock = buffered[start : start + size]
            planned = trainer.parts.microbatches.planner.cut(stock, pass_index)
            assert len(planned) == len(stock)
            assert tokens(planned) <= fewer * tokens(stock)
            first, second, _ = trainer._both_gradients(stock, planned)
            assert (first - second).norm() <= 1e-6 * first.norm()
            assert (first.norm() > 1e-4) == (dead != "all")


@pytest.mark.parametrize(
    ("loss_type", "beta"), [*((name, 0.0) for name in LOSSES), ("bnpo", 0.04), ("grpo", 0.04), ("dapo", 0.04)]
)
def test_every_loss_type(tiny_model, tmp_path: Path, loss_type, beta):
    if (loss_type, beta) == ("bnpo", 0.04):
        with pytest.warns(UserWarning, match="microbatches stays TRL's: loss_type 'bnpo'"):
            assert trainer_with(tiny_model, tmp_path, loss_type=loss_type, beta=beta).parts.microbatches.planner is None
        return
    trainer = trainer_with(tiny_model, tmp_path, loss_type=loss_type, beta=beta, num_iterations=2)
    check(trainer, fewer=0.7 if beta == 0.0 else 1.0)


@pytest.mark.parametrize(("loss_type", "dead"), [("grpo", "none"), ("bnpo", "half"), ("dapo", "all")])
def test_several_steps_of_a_batch_whatever_is_dead(tiny_model, tmp_path: Path, loss_type, dead):
    trainer = trainer_with(
        tiny_model, tmp_path, loss_type=loss_type, per_device_train_batch_size=4, steps_per_generation=8
    )
    check(trainer, dead=dead, fewer=0.98)


@traits(needs_whole_groups="forward")
def by_group(logps: Tensor, groups: Tensor, mask: Tensor) -> Tensor:
    size = (groups[:, None] == groups).sum(1)
    counted = torch.zeros(int(groups.max()) + 1).index_add(0, groups, (logps * mask).sum(1))
    return (counted[groups] / size)[:, None].abs().expand_as(logps)


@pytest.mark.parametrize("schedule", ["single_pass", {"name": "lopti", "eta": 0.03}])
def test_a_coefficient_of_whole_groups(tiny_model, tmp_path: Path, schedule):
    strategies = {"coefficient": by_group, "update_schedule": schedule}
    check(trainer_with(tiny_model, tmp_path, strategies, loss_type="cispo"))


@pytest.mark.parametrize("keep_groups", ["step", "forward"])
def test_whole_groups_and_advantages_of_tokens(tiny_model, tmp_path: Path, keep_groups):
    strategies = {"keep_groups": keep_groups, "advantage": "exchangeable_prefix_tree"}
    check(trainer_with(tiny_model, tmp_path, strategies, loss_type="dapo"), fewer=0.9)


def test_a_run_trains_the_same_weights_with_fewer_tokens(tiny_model, tmp_path: Path):
    settings: dict[str, Any] = {"max_steps": 6, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 4}
    settings |= {"optim": "sgd", "learning_rate": 1.0, "max_completion_length": 24}
    lopti = {"update_schedule": {"name": "lopti", "eta": 0.05}, "token_weight": "adv_reweight"}
    stock = ours(tiny_model, tmp_path / "trl", strategies=lopti, **settings)
    planned = ours(tiny_model, tmp_path / "planned", strategies={**lopti, "microbatches": "planned"}, **settings)
    assert planned.parts.microbatches.planner is not None  # verified at the first step
    assert moved(stock, tiny_model) > 1e-2
    assert max_difference(stock, planned) < 1e-4
    for mine, trls in zip(planned.state.log_history[:-1], stock.state.log_history[:-1], strict=True):
        assert mine.keys() == trls.keys() - {"clip_ratio/low_min", "clip_ratio/high_max"}
        for name in ("loss", "grad_norm", "cancellation/shared_prefix"):
            assert mine.get(name, 0.0) == pytest.approx(trls.get(name, 0.0), rel=1e-3, abs=1e-5)


CLIP_SHARES = [f"clip_ratio/{name}" for name in ("low_mean", "high_mean", "region_mean")]


def sometimes_dead(completions: list[Any], **_: Any) -> list[float]:
    """`digit_reward`, but every other group earns the same."""
    rewards = digit_reward(completions)
    return [0.5 if row // 4 % 2 else reward for row, reward in enumerate(rewards)]


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, CLIP_SHARES),
        ({"importance_sampling_level": "sequence"}, CLIP_SHARES),
        ({"beta": 0.04}, ["entropy", "kl", "groups/kl_dead", *CLIP_SHARES]),  # no row is left out
    ],
    ids=["token", "sequence", "reference"],
)
def test_means_are_trls_over_all_rows_also_those_left_out(tiny_model, tmp_path: Path, settings, names):
    settings = {"num_iterations": 3, "max_steps": 3, "max_completion_length": 24, "epsilon": 0.05, **settings}
    whole, planned = (
        ours(
            tiny_model,
            tmp_path / cut,
            strategies={"microbatches": cut},
            reward=sometimes_dead,
            per_device_train_batch_size=16 // number,
            gradient_accumulation_steps=number,
            **settings,
        ).state.log_history[:3]
        for cut, number in (("trl", 1), ("planned", 4))
    )
    assert max(entry["clip_ratio/high_mean"] for entry in whole) > 0.01
    for mine, trls in zip(planned, whole, strict=True):
        for name in names:
            assert mine[name] == pytest.approx(trls[name], rel=1e-3, abs=1e-5)


def test_a_wrong_plan_falls_back_to_trl(tiny_model, tmp_path: Path, monkeypatch):
    right = RLVRTrainer._compute_loss

    def wrong(self: RLVRTrainer, model: Any, inputs: dict[str, Any]) -> Tensor:
        return right(self, model, inputs) * (1.5 if "loss_scale" in inputs else 1.0)

    monkeypatch.setattr(RLVRTrainer, "_compute_loss", wrong)
    settings: dict[str, Any] = {"max_steps": 2, "gradient_accumulation_steps": 2}
    stock = ours(tiny_model, tmp_path / "trl", **settings)
    with pytest.warns(UserWarning, match="another gradient than TRL's at optimizer step 0"):
        fallen = ours(tiny_model, tmp_path / "planned", strategies={"microbatches": "planned"}, **settings)
    assert max_difference(stock, fallen) == 0.0


def test_cuts_are_not_compared_where_all_gradient_is_rounding(tmp_path: Path, recwarn: pytest.WarningsRecorder):
    """Under a KL term a policy that has not moved has no gradient on dead groups but that of rounding."""
    settings = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4, "max_completion_length": 32}
    trainer = ours(
        ROOT / "configs/tiny_policy/countdown",
        tmp_path,
        strategies={"microbatches": "planned"},
        reward=lambda completions, **_: [0.0] * len(completions),
        beta=0.04,
        max_steps=2,
        **settings,
    )
    assert trainer.parts.microbatches.planner is not None
    assert [str(each.message) for each in recwarn if "Planned micro-batches" in str(each.message)] == []


def test_neither_loss_nor_gradients_of_one_pass_are_held_during_the_next():
    weight, shape, held = torch.ones(7919, requires_grad=True), (1,) * 7, []

    def loss_of(_: Any) -> Tensor:
        held.append(sum(type(each) is Tensor and each.shape in (weight.shape, shape) for each in gc.get_objects()))
        return weight.sum().view(shape)

    _gradient(loss_of, [{}, {}, {}], [weight])
    assert held == [2, 2, 2]  # the weight and the sum of gradients


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
@pytest.mark.parametrize("environment", [{}, {"MALLOC_MMAP_MAX_": "65536"}], ids=["kept", "as_the_environment_says"])
def test_freed_memory_is_kept(environment: dict[str, str]):
    """Bytes of the process before 256 MiB are filled, and after they are freed."""
    program = "import psutil, torch; from evenkeel.trainer.step.setup import keep_freed_memory as keep; keep(); "
    program += "size = lambda: psutil.Process().memory_info().rss; old = size(); torch.ones(2**26); print(size() - old)"
    said = subprocess.check_output([sys.executable, "-c", program], env={**os.environ, **environment}, text=True)
    assert (int(said.split()[-1]) > 2**27) == (not environment)


def test_cuts_are_compared_again_at_later_steps_by_the_step_alone():
    due = [comparisons_due(1, step, 400) for step in range(400)]
    assert [step for step in range(1, 400) if due[step] > due[step - 1]] == [100, 200, 300, 399]
    assert (due[0], due[-1]) == (1, 5)
    assert [comparisons_due(2, step, 3) for step in range(3)] == [2, 3, 4]
    assert comparisons_due(1, 0, 1) == 1
    assert {comparisons_due(0, step, 40) for step in range(40)} == {0}


def late_in_long_responses(probs: Tensor, step: int) -> Tensor:
    """Of the whole micro-batch from step 1 on, where it is wider than the tiny example: no trial sees it."""
    late = step >= 1 and probs.shape[1] > 6
    return 1.0 - 0.5 * (probs.mean() if late else torch.zeros(())).expand_as(probs)


@pytest.mark.slow
def test_a_part_that_begins_late_is_found_and_a_resumed_run_stays_with_trls_cut(tiny_model, tmp_path: Path):
    settings: dict[str, Any] = {"max_steps": 8, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 4}
    settings |= {"max_completion_length": 24, "save_strategy": "steps", "save_steps": 2}
    strategies = {"token_weight": late_in_long_responses, "microbatches": "planned"}
    with pytest.warns(UserWarning, match="another gradient than TRL's at optimizer step 2"):
        straight = ours(tiny_model, tmp_path / "straight", strategies=strategies, **settings)
    assert straight.parts.microbatches.planner is None
    counts = straight.parts.checkpoint.counts
    assert (counts["planned_microbatches_compared"], counts["planned_microbatches_mismatch"]) == (1, 1)
    for step, found in (
        (4, "gave another gradient before the checkpoint"),
        (2, "another gradient than TRL's at optimizer step 2"),
    ):
        checkpoint = str(tmp_path / "straight" / f"checkpoint-{step}")
        with pytest.warns(UserWarning, match=found):
            resumed = ours(
                tiny_model, tmp_path / str(step), strategies=strategies, resume_from_checkpoint=checkpoint, **settings
            )
        assert max_difference(straight, resumed) == 0.0


@pytest.mark.parametrize(("unit", "updates"), [(1, 2), (1, 4), (4, 2), (2, 3)])
def test_the_same_rows_are_in_each_optimizer_step_on_any_number_of_ranks(unit: int, updates: int):
    rows = 48
    ids = torch.arange(rows)[:, None]
    found = {}
    for ranks in (1, 2, 4):
        here = rows // ranks
        if here % (unit * updates):
            continue
        cuts = [
            microbatches_over_all_ranks({"completion_ids": ids[r * here :][:here]}, unit, updates, updates, 7, r)
            for r in range(ranks)
        ]
        of_step = [torch.cat([cut[step]["completion_ids"] for cut in cuts]) for step in range(updates)]
        found[ranks] = steps = [sorted(part.flatten().tolist()) for part in of_step]
        assert sorted(row for step in steps for row in step) == list(range(rows))
        for step in steps:  # whole units
            assert all(unit * (row // unit) + place in step for row in step for place in range(unit))
    assert len(found) > 1
    (steps,) = {str(steps) for steps in found.values()}
    other = microbatches_over_all_ranks({"completion_ids": ids}, unit, updates, updates, 8, 0)
    assert str([sorted(part["completion_ids"].flatten().tolist()) for part in other]) != steps
