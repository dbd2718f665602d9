"""Every column of the report's tables, of curves so short that its number can be worked out by hand."""

import json

import pytest
from scipy import stats

from evenkeel.trainer.lab.reports.comparison import Comparison, adjusted, comparison
from evenkeel.trainer.lab.reports.contrasts import Contrast
from evenkeel.trainer.lab.reports.run_files import read_runs
from tests.trainer.lab.reports.recorded_sweep import record_sweep

POINTS = (0, 10, 20)
CURVES = {
    "grpo": [(0.1, 0.4, 0.3), (0.1, 0.5, 0.4), (0.1, 0.3, 0.5), (0.1, 0.4, 0.8)],
    "ar": [(0.1, 0.6, 0.5), (0.1, 0.5, 0.5), (0.1, 0.6, 0.6), (0.1, 0.7, 0.7)],
    "lopti": [(0.1, 0.4, 0.4), (0.1, 0.5, 0.6), (0.1, 0.3, 0.6), (0.1, 0.4, 1.0)],
}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    sweep = record_sweep(tmp_path_factory.mktemp("sweeps") / "sweep", seeds=(0, 1, 2, 3), per_item=False)
    for variant, curves in CURVES.items():
        steps = 2 if variant == "lopti" else 1  # optimizer steps of a rollout batch
        for seed, curve in enumerate(curves):
            lines = [
                {"step": point * steps, "eval/test/avg@1": value, "num_tokens": 100 * point}
                for point, value in zip(POINTS, curve, strict=True)
            ]
            path = sweep / f"{variant}-s{seed}/run/metrics.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return adjusted([comparison(read_runs(sweep), "test")])[0]


@pytest.fixture
def ar(numbers: Comparison) -> Contrast:
    return numbers.contrast_of("ar")


def test_start_and_final_accuracy(numbers: Comparison):
    grpo, ar, lopti = numbers.variants
    assert grpo.start.value == pytest.approx(0.1)
    # (0.3 + 0.4 + 0.5 + 0.8) / 4, (0.5 + 0.5 + 0.6 + 0.7) / 4, (0.4 + 0.6 + 0.6 + 1.0) / 4
    assert [row.final.value for row in (grpo, ar, lopti)] == pytest.approx([0.5, 0.575, 0.65])


def test_area_under_the_curve(numbers: Comparison, ar: Contrast):
    # (start + 2 · middle + end) / 4: 0.3, 0.375, 0.3, 0.425; and 0.45, 0.4, 0.475, 0.55
    assert numbers.variants[0].area.value == pytest.approx(1.4 / 4)
    assert numbers.variants[1].area.value == pytest.approx(1.875 / 4)
    assert ar.area.value == pytest.approx(0.475 / 4)


def test_difference_and_its_p(ar: Contrast):
    differences = [0.2, 0.1, 0.1, -0.1]
    reference = stats.ttest_1samp(differences, 0.0)
    assert ar.difference.value == pytest.approx(0.3 / 4)
    assert (ar.difference.low, ar.difference.high) == pytest.approx(tuple(reference.confidence_interval()))
    assert ar.p_value == pytest.approx(reference.pvalue)


def test_adjusted_p(numbers: Comparison, ar: Contrast):
    # lopti: 0.1, 0.2, 0.1, 0.2, t = 0.15 / (0.0577 / 2) = 5.196 with 3 degrees of freedom: the smaller p counts twice
    lopti = numbers.contrast_of("lopti")
    assert lopti.p_value == pytest.approx(2 * stats.t.sf(27**0.5, 3))
    assert lopti.adjusted_p == pytest.approx(2 * lopti.p_value)
    assert ar.adjusted_p == pytest.approx(ar.p_value)
