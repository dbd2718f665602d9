"""Intervals of the bench hold what they promise."""

import math

import pytest
import torch

from evenkeel.trainer.lab.gradients import jackknife
from evenkeel.trainer.lab.gradients.jackknife import block_of, margins, stated
from evenkeel.trainer.lab.gradients.moments import GradientSums, Moments


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


def _all(batches: list[GradientSums]) -> Moments:
    whole = GradientSums(2, batches[0].totals.shape[1])
    for each in batches:
        whole.absorb(each)
    return whole.moments()


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    """Of 200 benches with 16 batches; the truth: cosine of the means, and ‖mean‖² / (1.25 D)."""
    random = torch.Generator().manual_seed(0)
    means = torch.zeros(2, 12)
    means[0, 0], means[1, 0], means[1, 1] = 1.0, 0.8, 0.6
    truths = {"alignment": 0.8, "signal_to_noise": 1 / (1.25 * 12)}
    held = dict.fromkeys(truths, 0)
    for _ in range(200):
        batches = _batches(random, means)
        moments, blocks = _all(batches), [block_of(each) for each in batches]
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
        blocks.append(block_of(sums))
    found = margins(blocks, lambda each: each.totals.diagonal().sqrt() / each.groups)
    assert math.isclose(float(found[0]), 3.182446 * math.sqrt(10 / 4), rel_tol=1e-5)


def test_sketched_blocks_have_margins_wider_by_what_is_stated(monkeypatch):
    """Noise of 3,000 equal variances into 2,048 numbers: √(1 + 3000/2048) = 1.57 times as wide."""
    random = torch.Generator().manual_seed(1)
    ratios = []
    for _ in range(8):
        batches = _batches(random, torch.randn(2, 3000, generator=random) / 10)
        made = []
        for longest in (4096, 2048):
            monkeypatch.setattr(jackknife, "LONGEST", longest)
            made.append(margins([block_of(each) for each in batches], lambda each: each.signal_to_noise))
        ratios.append(made[1] / made[0])
    assert 1.3 < float(torch.stack(ratios).mean()) < 1.9


def test_few_batches_have_no_interval():
    sums = GradientSums(2, 3)
    sums.add(torch.eye(2), torch.ones(2, 3))
    assert margins([block_of(sums)] * 2, lambda each: each.norms).isnan().all()
    assert stated(float("nan")) == ""
    assert stated(0.123) == " ± 0.1"
