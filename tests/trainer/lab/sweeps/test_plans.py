"""What cells spend: rollout batches made equal, steps scaled with them, and unfair differences refused."""

import re
from pathlib import Path
from typing import Any

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.sweeps.cells import cells_of
from evenkeel.trainer.lab.sweeps.fairness import check_fair
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.plans import Plan, plans_of
from tests.paths import ROOT
from tests.trainer.lab.sweeps.test_checking import written

LOPTI = {"algorithm.update_schedule": "lopti"}
HALF = {"algorithm.sequences_per_update": 64, "trl.per_device_train_batch_size": 64}


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def plans(folder: Path, variants: dict[str, dict[str, Any]], base: str = "", **changes: Any) -> dict[str, Plan]:
    """Of the quickstart (25 rollout batches of 128 sequences, one optimizer step each) with ``base`` laid over it."""
    sweep, tree = load_sweep(written(folder, variants, base, **{"seeds": [0], **changes}))
    made = plans_of(sweep, cells_of(sweep), tree)
    check_fair(sweep, made, tree)
    return {plan.cell.name.removesuffix("-s0"): plan for plan in made}


def test_cells_with_more_steps_a_batch_get_as_many_batches(tmp_path: Path):
    made = plans(tmp_path, {"lopti": LOPTI, "half": HALF}, "evaluation: {every_steps: 5}")
    assert made["grpo"].overrides == ["seed=0", "name=grpo"]
    for variant in ("lopti", "half"):
        config, budget = made[variant].config, made[variant].budget
        # 25 batches · 2 steps; saved at 25 · 2, warm-up 2 · 2, evaluated every 5 · 2
        assert (budget.rollouts, budget.steps_per_rollout, budget.optimizer_steps) == (25, 2, 50)
        assert (config.trl["save_steps"], config.trl["warmup_steps"], config.evaluation.every_steps) == (50, 4, 10)
        assert budget.prompts_per_rollout == made["grpo"].budget.prompts_per_rollout == 16
    assert made["lopti"].config.name == "lopti"


def test_rollouts_of_the_sweep_are_every_cells(tmp_path: Path):
    made = plans(tmp_path, {"lopti": LOPTI}, rollouts=3)
    assert {name: plan.budget.optimizer_steps for name, plan in made.items()} == {"grpo": 3, "lopti": 6}
    assert {plan.budget.rollouts for plan in made.values()} == {3}


def test_steps_that_cannot_be_halved_are_refused_with_the_way_out(tmp_path: Path):
    base = """
algorithm: {sequences_per_update: 64}
trl: {per_device_train_batch_size: 64, max_steps: 50, save_steps: 26, warmup_steps: 3}
"""
    with pytest.raises(Refusal) as refusal:
        plans(tmp_path, {"one_step": {"algorithm.sequences_per_update": 128}}, base)
    assert "trl.warmup_steps: is 3 in the base file" in str(refusal.value)
    assert "'one_step' would need 1.5." in str(refusal.value)


UNFAIR = [
    ({"data.train.max_rows": 64}, "data.train", ["data"]),
    ({"trl.max_completion_length": 64}, "trl.max_completion_length", ["trl.max_completion_length"]),
    ({**LOPTI, "trl.max_steps": 24, "trl.save_steps": 26}, "rollouts", ["rollouts"]),
    ({"algorithm.prompts_per_rollout": 32}, "prompts_per_rollout", ["prompts_per_rollout"]),
    ({"rewards.0.verifier": "exact_match"}, "rewards.0.verifier", ["rewards"]),
]


@pytest.mark.parametrize(("settings", "expected", "allowed"), UNFAIR, ids=[str(case[0]) for case in UNFAIR])
def test_what_spoils_the_comparison_is_refused_unless_named(tmp_path, settings, expected, allowed):
    with pytest.raises(Refusal) as refusal:
        plans(tmp_path, {"other": settings})
    assert expected in str(refusal.value)
    assert "the baseline 'grpo'" in str(refusal.value)
    assert "compare.yaml" in str(refusal.value)
    plans(tmp_path, {"other": settings}, unfair=allowed)


def test_what_a_comparison_is_about_may_differ(tmp_path: Path):
    plans(tmp_path, {"other": {"trl.learning_rate": 1e-3, "algorithm.advantage": "rloo", "trl.beta": 0.01}})


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ({"num_procesess": 2}, "unrecognized arguments: --num_procesess"),
        ({"num_processes": "two"}, "invalid int value: 'two'"),
        ({"config_file": "configs/accelerate/ddpp.yaml"}, "configs/accelerate/ddpp.yaml: there is no such file."),
    ],
)
def test_what_the_launcher_would_refuse_of_every_cell_is_refused_before_the_first(tmp_path: Path, launch, words):
    with pytest.raises(Refusal, match=re.escape(words)):
        plans(tmp_path, {"rloo": {"algorithm.advantage": "rloo"}}, launch=launch)


@pytest.mark.parametrize(
    "launch", [{"num-processes": 2, "cpu": False}, {"config_file": "accelerate/cpu_two_processes"}]
)
def test_a_cells_processes_are_those_that_the_launcher_starts(tmp_path: Path, launch):
    assert plans(tmp_path, {}, "num_processes: 2\ntrl: {per_device_train_batch_size: 64}", launch=launch)
