"""Two passes of one policy round log π differently: no ratio is made of it while the policy has not moved."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trl import GRPOConfig, GRPOTrainer

from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.step.loss import Loss
from evenkeel.trainer.step.setup import Position
from tests.trainer.step.setups import setup_of
from tests.trainer.training import ours

CLIP_FREE = {"loss_type": "cispo", "epsilon_high": 1e30}
PRODUCTS = [
    {"name": "dfpo_min_replace", "weight": "product"},
    {"name": "dfpo_orthogonal", "weight": "product"},
    {"name": "trajectory_ratio", "weight": "product"},
    {"name": "topr", "ratio": "product"},
]
RATIOS = [*PRODUCTS, "vespo", "aspo", "sapo", "dppo", "importance_ratio", "symmetric_clip"]


class Recorder:
    """A coefficient of 1 that remembers what it was given."""

    def __init__(self) -> None:
        self.seen: list[dict[str, torch.Tensor]] = []

    def __call__(self, log_ratio, old_logps, logps, completion_ids, groups, mask):
        signals = {"log_ratio": log_ratio, "old_logps": old_logps, "logps": logps, "mask": mask.bool()}
        self.seen.append(signals | {"groups": groups, "completion_ids": completion_ids})
        return torch.ones_like(logps)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Any) -> None:
        pass


@contextmanager
def log_prob_noise(size: float, seed: int = 0) -> Iterator[None]:
    """Inside, every pass of TRL's trainers, and of ours, rounds: normal noise, so that two passes differ by ``size``.

    Each call of TRL's log-probability hook draws its own, on the CPU; the gradient is that without noise.
    """
    draws = torch.Generator().manual_seed(seed)
    exact: Callable[..., Any] = GRPOTrainer._get_per_token_logps_and_entropies

    def noisy(trainer: Any, *positional: Any, **keywords: Any) -> Any:
        logps, *others = exact(trainer, *positional, **keywords)
        drawn = torch.randn(logps.shape, generator=draws).to(logps) * (size / math.sqrt(2))
        return logps + drawn, *others

    GRPOTrainer._get_per_token_logps_and_entropies = noisy
    try:
        yield
    finally:
        GRPOTrainer._get_per_token_logps_and_entropies = exact


def recorded(model: Path, folder: Path, strategies: dict[str, Any] | None = None, **settings: Any) -> list[Any]:
    """The signals of every loss under noise of 0.1."""
    with log_prob_noise(0.1):
        given = {"coefficient": Recorder, **(strategies or {})}
        trainer = ours(model, folder, strategies=given, **CLIP_FREE, **settings)
    return trainer.strategies.coefficient.function.seen


def loss_with(folder: Path, coefficient: Any) -> Loss:
    sizes = {"num_generations": 2, "per_device_train_batch_size": 4}
    args = GRPOConfig(str(folder), report_to="none", use_cpu=True, epsilon_high=1e30, **sizes)
    return Loss(setup_of(args, build_strategies(coefficient=coefficient)))


@cache
def numbered_loss(folder: Path, number: int) -> Loss:
    return loss_with(folder, RATIOS[number])


def four_rows(scored: torch.Tensor) -> dict[str, Any]:
    return {
        "completion_ids": torch.ones(4, 3).long(),
        "completion_mask": torch.ones(4, 3).long(),
        "groups": torch.tensor([0, 0, 1, 1]),
        "scored": torch.ones(4).bool(),
        "row_keys": torch.arange(4),
        "shared_prefix": torch.zeros(4).long(),
        "advantages": torch.tensor([1.0, -1.0, -0.5, 0.5]),
        "old_per_token_logps": scored,
    }


def at(step: int) -> Position:
    return Position(step, 10, step, 0)


@settings(deadline=None)
@given(
    noise=st.lists(st.floats(-30, 30, width=32), min_size=12, max_size=12),
    of_scoring=st.booleans(),
    number=st.integers(0, len(RATIOS) - 1),
)
def test_an_unmoved_policy_has_coefficients_of_exactly_one(tmp_path_factory, noise, of_scoring, number):
    loss = numbered_loss(tmp_path_factory.getbasetemp(), number)
    exact, noisy = torch.full((4, 3), -1.0), torch.tensor(noise).view(4, 3) - 31
    scored, trained = (noisy, exact) if of_scoring else (exact, noisy)
    rollout = four_rows(scored)
    loss.start_rollout(rollout, torch.zeros(4).long(), step=0)
    with loss.of(rollout, at(0)) as batch:
        loss.write_advantages(trained.clone().requires_grad_(), None)
    assert torch.equal(batch["old_per_token_logps"], trained)
    torch.testing.assert_close(batch["advantages"], rollout["advantages"][:, None].expand(4, 3), rtol=1e-6, atol=0)


def test_what_is_computed_for_comparison_only_changes_no_ratio(tmp_path: Path):
    """And a row of padding, numbered −1, neither writes nor reads another row's π_old."""
    loss = loss_with(tmp_path, coefficient="importance_ratio")
    scored, trained, compared = (torch.full((4, 3), value) for value in (-1.0, -2.0, -3.0))
    rollout = four_rows(scored)
    loss.start_rollout(rollout, torch.zeros(4).long(), step=5)
    rollout["rollout_row"] = torch.tensor([0, 1, 2, -1])

    def written(logps: torch.Tensor, step: int) -> list[float]:
        with loss.of(rollout, at(step)) as batch:
            loss.write_advantages(logps, None)
        return batch["old_per_token_logps"][:, 0].tolist()

    with loss.apart():
        assert written(compared, 5) == [-3.0] * 4
        assert written(trained, 6) == [-3.0, -3.0, -3.0, 0.0]
    assert written(trained, 6) == [-1.0, -1.0, -1.0, 0.0]
    assert written(trained, 5) == [-2.0] * 4
    assert written(compared, 6) == [-2.0, -2.0, -2.0, 0.0]
    rollout["rollout_row"] = torch.tensor([3, 1, 2, 0])
    assert written(compared, 6) == [-1.0, -2.0, -2.0, -2.0]  # row 3 has had no training pass
    assert rollout["old_per_token_logps"].eq(-1).all()  # what a schedule selects by


@pytest.mark.parametrize("strategies", [{}, {"microbatches": "planned", "verify_steps": 0}], ids=["trl", "planned"])
def test_later_passes_see_the_old_policy_of_the_first(tiny_model, tmp_path: Path, strategies):
    """Three iterations of two micro-batches each; the first ones' ratio is 1."""
    settings = {"num_iterations": 3, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
    seen = recorded(tiny_model, tmp_path, strategies, **settings)
    assert len(seen) == 6
    for first, later in zip(seen[:2] * 2, seen[2:], strict=True):
        assert torch.equal(first["completion_ids"], later["completion_ids"])
        assert first["log_ratio"][first["mask"]].eq(0).all()
        assert torch.equal(later["old_logps"][later["mask"]], first["logps"][first["mask"]])
        assert later["log_ratio"][later["mask"]].abs().max() > 0.1


def test_rows_that_are_first_trained_after_the_policy_has_moved_keep_the_scored_one(tiny_model, tmp_path: Path):
    """Two optimizer steps of one micro-batch each; the second one's rows are first trained by a moved policy."""
    settings = {"steps_per_generation": 2, "max_steps": 2, "learning_rate": 1e-9}
    first, second = recorded(tiny_model, tmp_path, **settings)
    assert first["log_ratio"][first["mask"]].eq(0).all()
    differences = second["log_ratio"][second["mask"]]
    assert differences.std().item() == pytest.approx(0.1, rel=0.3)
