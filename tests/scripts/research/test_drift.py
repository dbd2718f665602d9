"""A run's drift on recorded rollouts, and what common random numbers are worth: numbers whose truth is known."""

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, kl_divergence
from transformers import AutoModelForCausalLM

from evenkeel.rewards import Refusal
from evenkeel.trainer.lab.statistics import StatisticsError
from scripts.research.common_random_numbers import noise_table, variance_ratio
from scripts.research.drift import DriftError, drift_table, drifts, learning_tax, newest_policy
from tests.trainer.lab.gradients.test_bench import RECIPE, rows_of


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)


def judged(correct: list[bool | None]) -> list[dict[str, Any]]:
    return [{**row, "correct": value} for row, value in zip(rows_of(0, 0), correct, strict=True)]


def test_a_policy_has_not_drifted_from_itself(model: Any):
    right, wrong, mixed = drifts(
        iter([judged([True] * 4 + [False] * 4 + [True] * 4)]), model, model, RECIPE, (0.2, 0.4)
    )
    assert [each.prompts for each in (right, wrong, mixed)] == [2, 1, 0]
    assert right.divergence.value == 0
    assert right.tax == 0
    assert wrong.divergence is None  # of one prompt nothing can be said
    assert math.isnan(mixed.tax)
    assert "| all right | 2 | 0 [0, 0] | 0 |" in drift_table([right])


def kl_by_torch(row: dict[str, Any], policy: Any, start: Any, temperature: float) -> list[float]:
    """Of each token of one completion, by torch's own KL and a pass without padding."""
    seen = torch.tensor([[*row["prompt_ids"], *row["completion_ids"]]])
    first = len(row["prompt_ids"]) - 1
    with torch.no_grad():
        after, before = (Categorical(logits=model(seen).logits[0, first:-1] / temperature) for model in (policy, start))
    return kl_divergence(after, before).tolist()


def test_the_drift_is_that_of_the_tokens_and_the_tax_its_share_of_the_gain(model: Any):
    moved = deepcopy(model)
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.mul_(1.5)  # far enough that float32 does not blur it
    rows = judged([True] * 8 + [False] * 4)
    found, *_ = drifts(iter([rows]), moved, model, RECIPE, (0.2, 0.4))
    by_hand = []
    for group in (rows[0:4], rows[4:8]):
        tokens = [value for row in group for value in kl_by_torch(row, moved, model, RECIPE.temperature)]
        by_hand.append(np.mean(tokens))
    assert found.divergence.value == pytest.approx(np.mean(by_hand), rel=1e-4)
    assert found.tax == pytest.approx(found.divergence.value / 20)
    assert math.isnan(drifts(iter([rows]), moved, model, RECIPE, None)[0].tax)


def test_nothing_judged_and_no_checkpoint_are_refused(model: Any, tmp_path: Path):
    with pytest.raises(DriftError, match="has a verdict"):
        drifts(iter([judged([None] * 12)]), model, model, RECIPE, None)
    with pytest.raises(DriftError, match="--weights"):
        newest_policy(tmp_path)
    for step in (5, 25, 100):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "checkpoint-best").mkdir()
    assert newest_policy(tmp_path).name == "checkpoint-100"


def test_a_ratio_of_variances_and_its_interval():
    own = np.array([[1.0, 2.0], [-1.0, 0.0], [0.0, 4.0], [3.0, 1.0]])
    ratio, low, high = variance_ratio(own, own / 2)
    assert (ratio, low, high) == pytest.approx((0.25, 0.25, 0.25))
    random = np.random.default_rng(0)
    ratio, low, high = variance_ratio(random.normal(size=(200, 1)), 2 * random.normal(size=(200, 1)))
    assert low < 4 < high
    assert high - low < 3
    with pytest.raises(StatisticsError, match="the variants are one"):
        variance_ratio(np.ones((4, 2)), own)


def test_too_few_seeds_are_refused():
    with pytest.raises(Refusal, match="2 seeds and 3 rollout batches"):
        noise_table(Path("configs/quickstart.yaml"), [], seeds=2, rollouts=3, report=print)


def test_a_tax_is_paid_for_a_gain():
    assert learning_tax(0.02, 0.4, 0.6) == pytest.approx(0.001)
    assert math.isnan(learning_tax(0.02, 0.4, 0.4))
