import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.drift import (
    divergences,
    probability_changes,
    uniform_groups,
)
from tests.trainer.training import digit_reward, ours

SETTINGS = {"beta": 0.04, "num_iterations": 2, "use_bias_correction_kl": False}


def test_probability_changes_by_hand():
    """.1 → .3 and .2 → .1 in the lowest quarter: +.2 − .1; .8 → .7 in the highest: −.1; the masked .5 → .9 is out."""
    old, new = torch.tensor([[0.1, 0.2], [0.8, 0.5]]).log(), torch.tensor([[0.3, 0.1], [0.7, 0.9]]).log()
    changes, counts = probability_changes(old, new, torch.tensor([[1, 1], [1, 0]]))
    assert changes.tolist() == pytest.approx([0.1, 0.0, 0.0, -0.1], abs=1e-6)
    assert counts.tolist() == [2, 0, 0, 1]


@given(st.lists(st.floats(-3, 3), min_size=3, max_size=3), st.lists(st.floats(-3, 3), min_size=3, max_size=3))
def test_the_divergence_of_samples_has_the_kl_as_its_mean(mine: list[float], reference: list[float]):
    """Over the whole vocabulary of three: Σ_v π(v) k3(v) = Σ_v π(v) log π(v)/π_ref(v)."""
    logps, ref_logps = (torch.tensor([x], dtype=torch.float64).log_softmax(1) for x in (mine, reference))
    found = divergences(logps, ref_logps)
    assert (found >= -1e-12).all()  # but for rounding
    expected = (logps.exp() * (logps - ref_logps)).sum().item()
    assert (logps.exp() * found).sum().item() == pytest.approx(expected, abs=1e-9)


def test_uniform_groups_by_hand():
    """All right, one unjudged; all wrong; mixed; nobody judged."""
    nan = math.nan
    right, wrong = uniform_groups(torch.tensor([1.0, nan, 0.0, 0.0, 1.0, 0.0, nan, nan]), 2)
    assert right.tolist() == [True, False, False, False]
    assert wrong.tolist() == [False, True, False, False]


def test_a_run_logs_drift_where_it_has_a_reference_and_changes_once_it_is_updated(tiny_model, tmp_path: Path):
    """Groups 1 and 3 of each pair of prompts are called right; each rollout batch is trained twice."""

    def verdicts(completions, log_extra, **_):
        log_extra("correct", [row // 4 % 2 == 0 for row in range(len(completions))])
        return digit_reward(completions)

    trainer = ours(tiny_model, tmp_path, reward=verdicts, max_steps=4, **SETTINGS)
    logs = [entry for entry in trainer.state.log_history if "loss" in entry]
    changes = [{name for name in entry if name.startswith("token_prob/change_q")} for entry in logs]
    assert changes[0] == changes[2] == set()
    assert changes[1]
    assert changes[3]
    for entry in logs[1:]:
        both = entry["drift/kl_all_right"], entry["drift/kl_all_wrong"]
        assert min(both) < entry["kl"] < max(both)  # every group is one or the other, so the whole is their mean
