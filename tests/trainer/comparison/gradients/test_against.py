"""A bench's ranks against those of a finished sweep: constructed sweeps whose order is known."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.comparison.gradients.test_gradients_page import FOUND, row
from tests.trainer.comparison.reports import recorded_sweep
from trainer.comparison.gradients.against import OUTCOMES, agreement, agreement_table, as_json, sweep_outcome
from trainer.comparison.gradients.replay import ReplayError

VARIANTS: dict[str, dict[str, Any]] = {
    "grpo": {},
    "slow": {"trl.learning_rate": 1e-9},
    "ar": {"algorithm.token_weight": {"name": "adv_reweight", "alpha": 0.2}},
    "ar_strong": {"algorithm.token_weight": {"name": "adv_reweight", "alpha": 0.6}},
    "exchangeable": {"algorithm.advantage": "exchangeable", "trl.loss_type": "grpo"},
    "rloo": {"algorithm.advantage": "rloo"},
    "ibpo": {"algorithm.advantage": "ibpo"},
}
EFFECTS = {"grpo": 0.0, "ar": 1.5, "ar_strong": 4.0, "exchangeable": -2.0, "rloo": 9.0}


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(recorded_sweep, "VARIANTS", VARIANTS)
    unfinished = ["rloo-s2", "ibpo-s1"]
    return recorded_sweep.record_sweep(tmp_path / "sweep", seeds=(0, 1, 2), effects=EFFECTS, unfinished=unfinished)


def measured(**signal_to_noise: float) -> Any:
    rows = [replace(row(name, value), gain=1.0) for name, value in signal_to_noise.items()]
    return replace(FOUND, rows=rows)


def test_variants_are_strategies_with_their_own_options_and_loss(sweep: Path):
    found = sweep_outcome(sweep)
    assert [named.name for named in found.strategies] == ["grpo", "ar", "ar_strong", "exchangeable", "rloo"]
    assert [named.loss for named in found.strategies] == ["dapo", "dapo", "dapo", "grpo", "dapo"]
    weights = [named.parts.token_weight.options for named in found.strategies if named.parts.token_weight]
    assert weights == [{"alpha": 0.2}, {"alpha": 0.6}]
    assert found.left_out["slow"] == "its first update is grpo's"
    assert "revision" in found.left_out["ibpo"]


def test_only_seeds_that_all_have_count(sweep: Path):
    found = sweep_outcome(sweep)
    assert found.seeds == [0, 1]
    outcome = found.outcomes["final accuracy"]
    assert sorted(outcome, key=outcome.__getitem__) == ["exchangeable", "grpo", "ar", "ar_strong", "rloo"]
    assert outcome.keys() == found.outcomes["area under the curve"].keys()


def test_the_same_order_has_a_correlation_of_one_and_the_opposite_of_minus_one(sweep: Path):
    found = sweep_outcome(sweep)
    agreed = agreement(measured(grpo=0.2, ar=0.3, ar_strong=0.4, exchangeable=0.1, rloo=0.5), found)
    same = agreed.correlations
    assert same["signal_to_noise, final accuracy"].value == pytest.approx(1)
    opposite = agreement(measured(grpo=0.4, ar=0.3, ar_strong=0.2, exchangeable=0.5, rloo=0.1), found).correlations
    assert opposite["signal_to_noise, final accuracy"].value == pytest.approx(-1)
    assert math.isnan(same["gain, final accuracy"].value)  # all alike
    assert "alignment, final accuracy" not in same  # the rows have none
    table = agreement_table(agreed, found)
    assert "| signal_to_noise, final accuracy | +1.00 [+1.00, +1.00] | 0.017 | 5 |" in table  # 2 of 120 orders
    assert "| gain, final accuracy | – |" in table
    assert "Not in it: slow: its first update is grpo's" in table
    assert json.loads(json.dumps(as_json(agreed, found), allow_nan=False))["seeds"] == [0, 1]


def test_what_rounding_alone_tells_apart_is_tied(sweep: Path):
    """SNR ranks 2.5, 2.5, 4, 1, 5 against 2, 3, 4, 1, 5: ρ = 9.5 / √(9.5 · 10)."""
    found = agreement(
        measured(grpo=0.2 + 1e-9, ar=0.2, ar_strong=0.4, exchangeable=0.1, rloo=0.5), sweep_outcome(sweep)
    ).correlations
    assert found["signal_to_noise, final accuracy"].value == pytest.approx((9.5 / 10) ** 0.5)


def test_what_has_no_number_is_left_out(sweep: Path):
    found = agreement(measured(grpo=0.2, ar=0.3, ar_strong=math.nan, exchangeable=0.1, rloo=0.5), sweep_outcome(sweep))
    assert found.correlations["signal_to_noise, final accuracy"].pairs == 4


def test_what_is_left_out_is_named_alike_in_table_and_json(sweep: Path):
    outcome = sweep_outcome(sweep)
    bench = replace(measured(grpo=0.2, ar=0.3, ar_strong=math.nan, exchangeable=0.1), absent={"rloo": "too few"})
    agreed = agreement(bench, outcome)
    found = as_json(agreed, outcome)["left_out"]
    unranked = {name for name in found if ", " in name}  # the rows have no alignment, and three have an SNR
    assert unranked == {f"{measure}, {each}" for measure in ("alignment", "signal_to_noise") for each in OUTCOMES}
    assert found["signal_to_noise, final accuracy"] == "3 variants have a number of it, and ranks want 4"
    assert found.keys() - unranked == {"slow", "ibpo", "rloo"}
    assert found["rloo"] == "too few"
    table = agreement_table(agreed, outcome)
    assert all(f"Not in it: {variant}: {reason}" in table for variant, reason in found.items())


def test_a_strategy_written_differently_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Lopti's η is 0.4 unless it is given; AR's α is written as a number with and without a point."""
    spelled: dict[str, dict[str, Any]] = {
        "grpo": {},
        "named": {"algorithm.advantage": {"name": "grpo"}, "algorithm.token_weight": "uniform"},
        "lopti": {"algorithm.update_schedule": "lopti"},
        "lopti_again": {"algorithm.update_schedule": {"name": "lopti", "eta": 0.4}},
        "lopti_other": {"algorithm.update_schedule": {"name": "lopti", "eta": 0.3}},
        "ar": {"algorithm.token_weight": {"name": "adv_reweight", "alpha": 1.0}},
        "ar_again": {"algorithm.token_weight": {"name": "adv_reweight", "alpha": 1}},
    }
    monkeypatch.setattr(recorded_sweep, "VARIANTS", spelled)
    found = sweep_outcome(recorded_sweep.record_sweep(tmp_path / "sweep", seeds=(0, 1)))
    assert [named.name for named in found.strategies] == ["grpo", "lopti", "lopti_other", "ar"]
    first = "its first update is {}'s"
    assert found.left_out == {
        "named": first.format("grpo"),
        "lopti_again": first.format("lopti"),
        "ar_again": first.format("ar"),
    }


def test_too_few_variants_are_refused(tmp_path: Path):
    three = recorded_sweep.record_sweep(tmp_path / "three", seeds=(0, 1))
    with pytest.raises(ReplayError, match="3 variants that a gradient can tell apart, and 2 seeds"):
        sweep_outcome(three)
