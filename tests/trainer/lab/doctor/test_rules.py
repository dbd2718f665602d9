"""Each fault raises its alarm at the line at which the arithmetic says so, and none before."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest
from trl import GRPOConfig

from evenkeel.trainer.lab.doctor.rules import SYMPTOMS, Examination
from evenkeel.trainer.run.config import RunConfig
from tests.paths import ROOT

HEALTHY: dict[str, Any] = {
    "reward": 0.5,
    "frac_reward_zero_std": 0.2,
    "completions/clipped_ratio": 0.1,
    "completions/mean_length": 100.0,
    "entropy": 0.5,
    "kl": 0.01,
    "learning_rate": 1e-6,
    "grad_norm": 0.3,
    "loss": 0.1,
    "eval_test/avg@1": 0.4,
}
"""A line of a log in which no rule finds anything, however often it comes."""


def alarms(fault: Callable[[int], dict[str, Any]], lines: int = 40) -> dict[str, int]:
    """Rule → line, from 1, at which it first speaks, where line n is the healthy one with ``fault(n)`` in it."""
    examination = Examination().add_all((n, {**HEALTHY, **fault(n)}) for n in range(1, lines + 1))
    return {name: finding.first_step for name, finding in examination.findings.items()}


FAULTS: dict[str, tuple[Callable[[int], dict[str, Any]], dict[str, int]]] = {
    "the learning rate is 0": (lambda n: {"learning_rate": 0.0}, {"learning-rate-zero": 3}),
    "the schedule ended at line 10": (lambda n: {"learning_rate": 0.0 if n > 10 else 1e-6}, {"learning-rate-zero": 13}),
    "a NaN at line 7": (lambda n: {"grad_norm": math.nan if n == 7 else 0.3}, {"not-finite": 7}),
    "an infinite loss at line 7": (lambda n: {"loss": math.inf if n >= 7 else 0.1}, {"not-finite": 7}),
    "half are cut off from line 10: (a + 4·0.1)/5 ≥ .5 never with a = 0.6 before its fifth line": (
        lambda n: {"completions/clipped_ratio": 0.6 if n >= 10 else 0.1},
        {"truncated": 13},  # (4 · .6 + .1) / 5 = .5
    ),
    "no gradient": (lambda n: {"grad_norm": 0.0}, {"nothing-trained": 5}),
    "all rewards equal": (
        lambda n: {"grad_norm": 0.0, "frac_reward_zero_std": 1.0},
        {"nothing-trained": 5, "dead-groups": 5},
    ),
    "80 % of the groups dead from line 10": (
        lambda n: {"frac_reward_zero_std": 0.8 if n >= 10 else 0.5},
        {"dead-groups": 14},  # (4 · .8 + .5) / 5 = .74
    ),
    "entropy .5 · .8^n: n − 2 ≥ log(.1) / log(.8) + 3 = 13.3": (
        lambda n: {"entropy": 0.5 * 0.8**n},
        {"entropy-collapse": 16},  # the median of lines n−4 … n is that of line n − 2, the start is that of line 3
    ),
    "KL .01 · 1.5^n: n − 2 ≥ log(100) / log(1.5) = 11.4": (lambda n: {"kl": 0.01 * 1.5**n}, {"kl-runaway": 14}),
    "lengths 100 · 1.1^n: n − 2 ≥ 3 + log(2) / log(1.1) = 10.3": (
        lambda n: {"completions/mean_length": 100 * 1.1**n},
        {"lengths-drifting": 13},
    ),
    "lengths shrink as fast": (lambda n: {"completions/mean_length": 100 / 1.1**n}, {"lengths-drifting": 13}),
    "reward up by .02 a line: from the mean at line 3 by .2 at n − 2 = 13, where held-out owes .04": (
        lambda n: {"reward": 0.02 * n},
        {"held-out-stands-still": 15},
    ),
    "held-out gains too little: (n − 1)/6.5 < (n − 5)/5 where n > 18.3": (
        lambda n: {"reward": 0.02 * n, "eval_test/avg@1": 0.4 + 0.02 * n / 6.5},
        {"held-out-stands-still": 19},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_raises_its_alarm_at_its_line_and_no_other(fault: str) -> None:
    made, expected = FAULTS[fault]
    assert alarms(made) == expected


@pytest.mark.parametrize(
    "sound",
    [
        lambda n: {},
        lambda n: {"learning_rate": 0.0 if n in (1, 40) else 1e-6},  # a warm-up's first line, a decay's last
        lambda n: {"completions/mean_length": 100 * 1.1**n, "reward": 0.02 * n, "eval_test/avg@1": 0.02 * n},
        lambda n: {"grad_norm": 0.0 if n % 5 else 0.3},
        lambda n: {"reward": math.nan, "entropy": math.nan, "kl": math.nan},  # nothing to measure
        lambda n: {"completions/clipped_ratio": 0.4, "frac_reward_zero_std": 0.7},
        lambda n: {"entropy": 0.5 * 0.97**n},  # .31 of the start after 40 lines
        lambda n: {"reward": 0.02 * n, "eval_test/avg@1": 0.3 + 0.005 * n},  # a quarter of the training reward's gain
    ],
)
def test_what_is_healthy_raises_none(sound: Callable[[int], dict[str, Any]]) -> None:
    assert alarms(sound) == {}


@pytest.mark.parametrize("rule", SYMPTOMS, ids=lambda rule: rule.name)
def test_every_rule_names_settings_that_exist_and_numbers_that_it_finds(rule: Any) -> None:
    named = rule.settings.split(", ")
    of_trl = {setting.removeprefix("trl.") for setting in named if setting.startswith("trl.")}
    assert not of_trl - {field.name for field in dataclasses.fields(GRPOConfig)}
    for setting in named[: -len(of_trl)]:
        model: Any = RunConfig
        for key in setting.partition(":")[0].split("."):
            assert key in model.model_fields, setting
            model = model.model_fields[key].annotation
    made = next(made for made, expected in FAULTS.values() if rule.name in expected)
    for logged, expected in (({}, of_trl), ({"groups/frac_dead": 0.2}, {*named})):
        lines = [(n, {**HEALTHY, **logged, **made(n)}) for n in range(1, 41)]
        finding = Examination().add_all(lines).findings[rule.name]
        assert finding.text
        assert {*finding.settings} == expected, "a log of TRL's has TRL's arguments"
        assert ("GRPOConfig" in finding.advice) == (not logged)


def test_the_page_holds_every_rule_with_its_threshold() -> None:
    rows = [line.split(" | ") for line in (ROOT / "docs/doctor.md").read_text().splitlines() if line.startswith("| `")]
    listed = [(row[0].strip("| `"), row[1]) for row in rows if len(row) == 6]
    assert listed == [(rule.name, rule.severity) for rule in SYMPTOMS]
