"""Intervals of the bench hold what they promise."""

import math

import pytest
import torch

from evenkeel.trainer.lab.gradients.jackknife import margins
from evenkeel.trainer.lab.gradients.moments import GradientSums, Moments, together


def _batches(random: torch.Generator, means: torch.Tensor, batches: int = 16, groups: int = 8) -> list[GradientSums]:
    """Groups whose two gradients are ``means`` (2, D) and noise that they have in common but for a half."""
    made = []
    for _ in range(batches):
        sums = GradientSums(2, means.shape[1])
        for _ in range(groups):
            shared = torch.randn(1, means.shape[1], generator=random)
            sums.add(torch.eye(2), means + shared + 0.5 * torch.randn(means.shape, generator=random))
        made.append(sums)
    return made


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    """Of 200 benches with 16 batches; the truth: cosine of the means, and ‖mean‖² / (1.25 D)."""
    random = torch.Generator().manual_seed(0)
    means = torch.zeros(2, 12)
    means[0, 0], means[1, 0], means[1, 1] = 1.0, 0.8, 0.6
    truths = {"alignment": 0.8, "signal_to_noise": 1 / (1.25 * 12)}
    held = dict.fromkeys(truths, 0)
    for _ in range(200):
        blocks = _batches(random, means)
        moments = together(blocks).moments()
        for name, truth in truths.items():

            def statistic(each: Moments, name: str = name) -> torch.Tensor:
                return each.alignment(0) if name == "alignment" else each.signal_to_noise

            place = 1
            distance = abs(float(statistic(moments)[place]) - truth)
            held[name] += distance <= float(margins(blocks, statistic)[place])
    for count in held.values():  # 190 expected, standard deviation 3
        assert 178 <= count <= 199, held


def test_a_mean_has_the_t_interval():
    """Of blocks with one group each: the interval of the mean of 4, 7, 1, 8 is ± 3.182 · s/√4, s² = 10."""
    blocks = []
    for value in (4.0, 7.0, 1.0, 8.0):
        sums = GradientSums(1, 1)
        sums.add(torch.eye(1), torch.tensor([[value]]))
        blocks.append(sums)
    found = margins(blocks, lambda each: each.totals.diagonal().sqrt() / each.groups)
    assert math.isclose(float(found[0]), 3.182446 * math.sqrt(10 / 4), rel_tol=1e-5)
