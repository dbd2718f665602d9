"""What every strategy that ships must keep, collected from the files: one that is added is tested with no edit here."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, reject, settings
from hypothesis import strategies as some
from torch import Tensor

from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, TOKEN_WEIGHT
from evenkeel.trainer.algorithms.registry import Strategy, built_in, find_strategy
from evenkeel.trainer.algorithms.results import checked_advantages, checked_factors
from evenkeel.trainer.algorithms.trial import tried
from tests.trainer.algorithms.advantages.rollouts import rollout

GROUP_SIZE, LONGEST = 4, 5


@some.composite
def batches(draw: Any) -> dict[str, Any]:
    """All signals of one to three groups of four responses: mixed, dead, unscored in part or whole; in turns."""
    num_groups = draw(some.integers(1, 3))
    rows = num_groups * GROUP_SIZE
    score = some.sampled_from([0.0, 1.0, 0.0, 1.0, 0.25, -0.5, float("nan")])
    rewards = torch.tensor(draw(some.lists(score, min_size=rows, max_size=rows)))
    lengths = torch.tensor(draw(some.lists(some.integers(1, LONGEST), min_size=rows, max_size=rows)))
    generator = torch.Generator().manual_seed(draw(some.integers(0, 2**20)))
    mask = (torch.arange(LONGEST) < lengths[:, None]).long()
    mask[:, 1:-1] *= torch.rand(rows, LONGEST - 2, generator=generator) < 0.8
    return rollout(rewards, GROUP_SIZE, mask, generator)


def names(kind: str) -> list[str]:
    return sorted(built_in(kind))


@cache
def tried_once(kind: str, name: str) -> Strategy:
    return tried(find_strategy(kind, name))


def fresh(kind: str, name: str, signals: dict[str, Any]) -> Strategy:
    """Built anew, so that a state is that of the first batch; columns of reward functions become zeros."""
    strategy = tried_once(kind, name)
    strategy = replace(strategy, function=deepcopy(strategy.function))
    signals |= {column: torch.zeros(len(signals["rewards"])) for column in strategy.columns if column not in signals}
    return strategy


def advantages_of(name: str, signals: dict[str, Any], group_size: int = GROUP_SIZE) -> Tensor:
    strategy = fresh(ADVANTAGE, name, signals)
    try:
        result = strategy(signals)
    except ValueError:  # refused in words: rewards that its formula has no answer for
        reject()
    return checked_advantages(strategy, result, signals["rewards"], group_size, LONGEST, "in a test")


def with_an_unscored_row(signals: dict[str, Any]) -> dict[str, Any]:
    """Each group again with its first row once more, which nobody scored."""
    rows = torch.arange(len(signals["rewards"])).view(-1, GROUP_SIZE)
    rows = torch.cat([rows, rows[:, :1]], dim=1).flatten()
    wider = permuted(signals, rows) | {"group_size": GROUP_SIZE + 1}
    added = torch.arange(len(rows)) % (GROUP_SIZE + 1) == GROUP_SIZE
    for name in ("rewards", "correct", "rewards_per_function"):
        wider[name][added] = torch.nan
    wider["scored"][added] = False
    return wider


def permuted(signals: dict[str, Any], rows: Tensor) -> dict[str, Any]:
    count = len(signals["rewards"])
    return {
        name: value[rows] if isinstance(value, Tensor) and value.dim() and len(value) == count else value
        for name, value in signals.items()
    }


@pytest.mark.parametrize("name", names(ADVANTAGE))
@settings(max_examples=5, derandomize=True, deadline=None)
@given(signals=batches())
def test_an_estimator_keeps_its_contract_and_knows_no_order(name: str, signals: dict[str, Any]):
    before = {key: value.clone() for key, value in signals.items() if isinstance(value, Tensor)}
    result = advantages_of(name, dict(signals))
    assert all(torch.equal(signals[key].nan_to_num(), value.nan_to_num()) for key, value in before.items())
    assert torch.equal(result.nan_to_num(nan=9.0), advantages_of(name, dict(signals)).nan_to_num(nan=9.0))
    rows = torch.arange(len(signals["rewards"])).view(-1, GROUP_SIZE)
    turned = rows.flip(0)[:, [2, 0, 3, 1]].flatten()  # other groups first, and other rows in each
    again = advantages_of(name, permuted(signals, turned))
    torch.testing.assert_close(again, result[turned], equal_nan=True, rtol=1e-4, atol=1e-5)
    wider = advantages_of(name, with_an_unscored_row(signals), GROUP_SIZE + 1).view(
        -1, GROUP_SIZE + 1, *result.shape[1:]
    )
    torch.testing.assert_close(wider[:, :-1].flatten(0, 1), result, equal_nan=True, rtol=1e-4, atol=1e-5)


OTHERS = [(kind, name) for kind in (TOKEN_WEIGHT, COEFFICIENT) for name in names(kind)]


@pytest.mark.parametrize(("kind", "name"), OTHERS)
@settings(max_examples=5, derandomize=True, deadline=None)
@given(signals=batches())
def test_a_weight_or_coefficient_keeps_its_contract(kind: str, name: str, signals: dict[str, Any]):
    strategy = fresh(kind, name, signals)
    with torch.no_grad():
        first, again = strategy(signals), fresh(kind, name, signals)(signals)
    mask = signals["mask"]
    assert torch.equal(checked_factors(strategy, first, mask, ""), checked_factors(strategy, again, mask, ""))
    assert not first.requires_grad
    turned = torch.arange(len(first)).view(-1, GROUP_SIZE).flip(0)[:, [2, 0, 3, 1]].flatten()
    other = fresh(kind, name, signals)(permuted(signals, turned))
    torch.testing.assert_close(other * signals["mask"][turned], (first * signals["mask"])[turned], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", names(COEFFICIENT))
@settings(max_examples=5, derandomize=True, deadline=None)
@given(signals=batches())
def test_a_coefficient_is_one_on_policy_and_finite_however_far_the_policy_went(name: str, signals: dict[str, Any]):
    mask, old = signals["mask"], signals["old_logps"]
    on_policy = fresh(COEFFICIENT, name, signals)(signals | {"logps": old, "log_ratio": torch.zeros_like(old)})
    projects = name == "dfpo_orthogonal"  # so that contributions of a group cancel, whatever its advantages
    assert projects or torch.allclose(on_policy * mask, mask.float())
    logps, old = 30 * old.flip(0), 30 * old
    moved = signals | {"logps": logps, "old_logps": old, "log_ratio": logps - old}
    far = fresh(COEFFICIENT, name, moved)(moved)
    assert far.isfinite().all()
    assert projects or (far * mask >= 0).all()
