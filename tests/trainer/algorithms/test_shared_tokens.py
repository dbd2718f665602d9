"""The arithmetic of docs/shared_tokens.md, by the functions that train."""

import pytest
import torch

from evenkeel.trainer.algorithms.advantages.exchangeable import exchangeable
from evenkeel.trainer.algorithms.coefficients.drift_fixing import dfpo_min_replace, dfpo_orthogonal
from evenkeel.trainer.algorithms.coefficients.importance_ratios import grpo_fix, trajectory_ratio

A = torch.tensor([[1.0], [-1.0]])
MASK, GROUP, SCORED = torch.ones(2, 1, dtype=torch.long), torch.zeros(2, dtype=torch.long), torch.ones(2).bool()


def shared(k: torch.Tensor, advantages: torch.Tensor = A) -> float:
    """C of a token that both responses share."""
    return float((k * advantages).mean())


def test_what_breaks_and_what_restores_the_cancellation():
    log_ratio = torch.tensor([[2.0], [1.0]]).log()
    assert shared(trajectory_ratio(log_ratio, MASK)) == pytest.approx(0.5)
    ratio = torch.full((2, 1), 1.3, requires_grad=True)
    torch.min(ratio * A, ratio.clamp(0.8, 1.2) * A).mean().backward()  # PPO's objective, differentiated by the ratio
    assert ratio.grad is not None
    assert float(1.3 * ratio.grad.sum()) == pytest.approx(-0.65)
    lengths = torch.tensor([[1 / 2], [1 / 4]])
    assert shared(lengths) == pytest.approx(0.125)

    orthogonal = dfpo_orthogonal(log_ratio, A, MASK, GROUP, SCORED)
    torch.testing.assert_close(orthogonal, torch.tensor([[1.5], [1.5]]))
    assert shared(orthogonal) == pytest.approx(0, abs=1e-7)
    assert shared(dfpo_min_replace(log_ratio, A, MASK, GROUP, SCORED)) == pytest.approx(0)
    assert shared(grpo_fix(torch.full((2, 1), 1.3).log())) == 0
    credit = exchangeable(torch.tensor([1.0, 0.0]), 2, lengths[:, 0])
    assert float(credit[0] / credit[1]) == pytest.approx(-1 / 2, abs=1e-5)  # ⅓ to −⅔, both over the group's std
    assert shared(lengths, credit.unsqueeze(1)) == pytest.approx(0, abs=1e-7)
