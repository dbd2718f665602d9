"""Jumps are found where they were put, and hardly ever where there is none."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm, ttest_ind

from evenkeel.trainer.lab.rollouts import RecordedRollouts
from evenkeel.trainer.lab.rollouts.jumps import jumps
from evenkeel.trainer.lab.rollouts.summaries import COLUMNS, BatchSummary, Moments, summary_of
from tests.trainer.lab.rollouts.recorded_rollouts import record_rollouts

CONSTANT = dict.fromkeys(
    ("reward", "accuracy", "wrong_reward", "length", "truncated", "repeated"), Moments(8, 0.5, 0.0)
)


def batches_of(rewards: np.ndarray) -> list[BatchSummary]:
    """Summaries of batches (batches, groups) whose groups' mean rewards are given."""
    return [
        BatchSummary(number, 2 * number, 8, [], CONSTANT | {"reward": Moments.of(row)}, {})
        for number, row in enumerate(rewards)
    ]


def test_what_is_paid_for_nothing_is_listed_first(tmp_path: Path):
    run = record_rollouts(tmp_path / "run", None, batches=40, jump_at=23)
    tables = RecordedRollouts(run).batches(COLUMNS)
    found = jumps([summary_of(number, table) for number, table in enumerate(tables)])
    assert (found[0].metric, found[0].step, found[0].before) == ("wrong_reward", 23, 0.0)
    assert found[0].after == pytest.approx(0.45, abs=0.1)
    assert found[0].accuracy[1] - found[0].accuracy[0] == pytest.approx(0, abs=0.15)
    assert {jump.metric for jump in found} == {"wrong_reward", "reward"}


def test_standard_errors_are_those_of_a_t_test():
    rewards = np.random.default_rng(0).normal(size=(4, 5))
    rewards[2:] += 9
    (found,) = jumps(batches_of(rewards))  # four batches: one on either side
    probability = ttest_ind(rewards[2], rewards[1]).pvalue
    assert (found.number, found.step, found.window) == (2, 4, 1)
    assert found.errors == pytest.approx(norm.isf(probability / 2))


def test_a_run_without_a_change_shows_none_or_hardly_one():
    """60 runs × 39 places × P(|z| > 4) = 6.3e-5: 0.15 of a jump expected, fewer as neighbours count once."""
    random = np.random.default_rng(1)
    found = [jump for _ in range(60) for jump in jumps(batches_of(random.normal(size=(40, 4))))]
    assert len(found) <= 2  # more: beyond 99.9 % of Poisson(.15)
