"""Signal and noise without bias, by exact enumeration, and their intervals; a basis and a sketch of the gradients."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.trainer.lab.gradients.jackknife import margins
from evenkeel.trainer.lab.gradients.moments import GradientSums, basis, together
from evenkeel.trainer.lab.gradients.sketch import CountSketch


def sums_of(gradients: torch.Tensor) -> GradientSums:
    """Of gradients (P, S, D), each group's as given."""
    sums = GradientSums(gradients.shape[1], gradients.shape[2])
    for group in gradients:
        sums.add(torch.eye(len(group)), group)
    return sums


def test_between_is_the_mean_over_pairs_of_different_groups():
    gradients = torch.randn(5, 3, 7, generator=torch.Generator().manual_seed(0))
    moments = sums_of(gradients).moments()
    pairs = [(p, q) for p in range(5) for q in range(5) if p != q]
    wanted = torch.stack([gradients[p] @ gradients[q].T for p, q in pairs]).mean(0)
    assert torch.allclose(moments.between.float(), wanted, atol=1e-5)
    covariance = sum(torch.cov(gradients[:, 0].T).diagonal())
    assert float(moments.noise[0]) == pytest.approx(float(covariance), rel=1e-5)
    assert float(moments.signal_to_noise[0]) == pytest.approx(float(wanted[0, 0] / covariance), rel=1e-4)
    total = gradients.sum(0)
    assert torch.allclose(moments.cosines[0, 1].float(), torch.cosine_similarity(total[0], total[1], dim=0), atol=1e-6)
    assert float(moments.alignment(1)[1]) == pytest.approx(1.0, abs=1e-6) or moments.alignment(1)[1].isnan()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(1, 12), st.integers(1, 4), st.integers(0, 100))
def test_a_basis_has_as_many_rows_as_are_independent(estimators: int, tokens: int, rank: int, seed: int):
    random = torch.Generator().manual_seed(seed)
    made = torch.randn(estimators, rank, generator=random) @ torch.randn(rank, tokens, generator=random)
    coefficients, rows = basis(made)
    assert len(rows) <= min(estimators, tokens, rank)
    assert torch.allclose((coefficients @ rows).float(), made, atol=1e-5 * float(made.abs().max() + 1))


def test_a_sketch_keeps_inner_products_within_its_stated_error():
    """Over 200 seeds the products' mean is the true one, and their spread that of the bound, not more."""
    x, y = torch.randn(2, 3_000, generator=torch.Generator().manual_seed(1))
    y = 0.5 * x + y
    cosines = []
    for seed in range(200):
        sketch = CountSketch([1_000, 2_000], most=256, seed=10 * seed)
        images = [sketch([part.view(-1, 10) for part in vector.split([1_000, 2_000])]) for vector in (x, y)]
        cosines.append(float(images[0] @ images[1] / (x.norm() * y.norm())))
    found, true = torch.tensor(cosines), float(torch.cosine_similarity(x, y, dim=0))
    assert float(found.mean()) == pytest.approx(true, abs=4 * sketch.error / 200**0.5)
    assert float(found.std()) < sketch.error
    assert CountSketch([3_000]).error == 0.0
    assert torch.equal(CountSketch([3_000])([x]), x)


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
    truths = {(lambda each: each.alignment(0)): 0.8, (lambda each: each.signal_to_noise): 1 / (1.25 * 12)}
    held = dict.fromkeys(truths, 0)
    for _ in range(200):
        blocks = _batches(random, means)
        moments = together(blocks).moments()
        for statistic, truth in truths.items():
            distance = abs(float(statistic(moments)[1]) - truth)
            held[statistic] += distance <= float(margins(blocks, statistic)[1])
    for count in held.values():  # 190 expected, standard deviation 3
        assert 178 <= count <= 199, held


def test_a_mean_has_the_t_interval():
    """Of blocks with one group each: the interval of the mean of 4, 7, 1, 8 is ± 3.182 · s/√4, s² = 10."""
    blocks = [sums_of(torch.tensor([[[value]]])) for value in (4.0, 7.0, 1.0, 8.0)]
    found = margins(blocks, lambda each: each.totals.diagonal().sqrt() / each.groups)
    assert math.isclose(float(found[0]), 3.182446 * math.sqrt(10 / 4), rel_tol=1e-5)
