"""Coefficients against what the authors' (or other public) code does to each token, in tables of its gradients."""

import inspect

import pytest
import torch

from evenkeel.trainer.algorithms.coefficients import (
    asymmetric,
    divergence,
    future_kl,
    rewards_as_labels,
    soft_gates,
    tapered,
)
from tests.trainer.algorithms.published import published_cases

STRATEGIES = {
    "aspo": asymmetric.aspo,
    "dppo": divergence.dppo,
    "fipo": future_kl.fipo,
    "real": rewards_as_labels.real,
    "sapo": soft_gates.sapo,
    "topr": tapered.topr,
    "vespo": soft_gates.vespo,
}
CASES = [(name, case) for name in STRATEGIES for case in published_cases("coefficients", name)]


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}-{case['options']}" for name, case in CASES])
def test_each_token_weighs_what_the_published_code_gives_it(name, case):
    """A table holds −N ∂loss/∂log π ÷ A of each token, N tokens: what multiplies A ∇log π in that code."""
    signals = {**case, "log_ratio": case["logps"] - case["old_logps"]}
    wanted = set(inspect.signature(STRATEGIES[name]).parameters) & set(signals)
    result = STRATEGIES[name](**{signal: signals[signal] for signal in wanted}, **case["options"])
    torch.testing.assert_close(result * case["mask"], case["coefficients"], rtol=1e-5, atol=1e-6)
