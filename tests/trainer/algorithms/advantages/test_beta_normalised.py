"""BNPO's Beta density against scipy's; the numbers of the authors' code are in golden.json."""

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.advantages.beta_normalised import bnpo_beta
from evenkeel.trainer.algorithms.advantages.group_baselines import dr_grpo
from tests.trainer.algorithms.advantages.rollouts import NAN, property_test


@property_test
@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=16, max_size=16))
def test_it_is_the_centred_reward_over_scipys_density(rewards):
    groups = np.array(rewards).reshape(4, 4)
    rates = groups.mean(1)
    if rates.min() == rates.max():
        alpha = beta = 1.0
    else:
        concentration = rates.mean() * (1 - rates.mean()) / rates.var(ddof=1) - 1
        alpha = max(1.0, 1 + concentration * rates.mean() / 3)
        beta = max(1.0, 1 + concentration * (1 - rates.mean()) / 3)
    expected = np.zeros_like(groups)
    mixed = (rates > 0) & (rates < 1)
    density = scipy.stats.beta.pdf(rates[mixed], alpha, beta)
    expected[mixed] = (groups[mixed] - rates[mixed, None]) / density[:, None]
    torch.testing.assert_close(
        bnpo_beta(torch.tensor(rewards, dtype=torch.float64), 4), torch.tensor(expected).view(-1), rtol=1e-9, atol=1e-12
    )


def test_one_group_alone_is_only_centred():
    rewards = torch.tensor([1.0, 0.0, NAN, 1.0])
    torch.testing.assert_close(bnpo_beta(rewards, 4), dr_grpo(rewards, 4), equal_nan=True)


def test_rewards_are_mapped_from_their_range():
    rewards = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    torch.testing.assert_close(bnpo_beta(6 * rewards - 3, 4, lowest=-3.0, highest=3.0), bnpo_beta(rewards, 4))


def test_rewards_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"is 0\.5 or 2, but a Beta density"):
        bnpo_beta(torch.tensor([2.0, 2.0, 1.0, 0.0]), 2)
    with pytest.raises(ValueError, match="leave no interval"):
        bnpo_beta(torch.zeros(2), 2, lowest=1.0, highest=1.0)
