"""The sweep's YAML file: what it unfolds into, what its cells spend, and what is said about a wrong or unfair one."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.sweeps.cells import cells_of, override_value
from evenkeel.trainer.lab.sweeps.fairness import check_fair
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.plans import Plan, plans_of
from evenkeel.trainer.lab.sweeps.schema import LocalExecution
from evenkeel.trainer.run.config.layers import overridden
from evenkeel.trainer.run.config.yaml_document import Node, write
from tests.paths import ROOT
from tests.trainer.lab.sweeps.test_checking import written

SHIPPED = [path for path in sorted((ROOT / "configs/sweeps").glob("*.yaml")) if not path.stem.endswith("_base")]
SWEEP: dict[str, Any] = {
    "config": str(ROOT / "configs/quickstart.yaml"),
    "baseline": "grpo",
    "seeds": [0, 1],
    "variants": {"grpo": {}, "rloo": {"algorithm.advantage": "rloo"}},
}


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def sweep_file(folder: Path, **changes: Any) -> Path:
    written = {key: value for key, value in {**SWEEP, **changes}.items() if value is not ...}
    path = folder / "compare.yaml"
    path.write_text(write(written))
    return path


def test_defaults_come_from_the_files_name(tmp_path: Path):
    sweep, _ = load_sweep(sweep_file(tmp_path, variants={"grpo": None}))
    assert (sweep.name, sweep.output_dir) == ("compare", "runs/sweeps/compare")
    assert sweep.config == str(ROOT / "configs/quickstart.yaml")
    assert sweep.variants == {"grpo": {}}
    assert sweep.executor == LocalExecution(parallel=1)
    assert sweep.retries == 1


def test_what_a_sweep_does_not_say_is_that_of_the_one_it_extends(tmp_path: Path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "base.yaml").write_text("model: {}\n")
    changes = {"config": "base.yaml", "name": "first", "output_dir": "elsewhere"}
    sweep_file(tmp_path / "below", **changes)
    second = tmp_path / "second.yaml"
    second.write_text("extends: below/compare.yaml\nseeds: [7]\nvariants: {opo: {algorithm.advantage: opo}}\n")
    sweep, _ = load_sweep(second)
    assert (sweep.name, sweep.output_dir) == ("second", "runs/sweeps/second")  # or two sweeps would share a directory
    assert sweep.seeds == [7]
    assert [*sweep.variants] == ["grpo", "rloo", "opo"]
    assert sweep.config == str(tmp_path / "below" / "base.yaml")


REFUSALS = [
    ({"basline": "grpo"}, "basline: there is no such key. Did you mean baseline?"),
    ({"form": ["runs/base@80"]}, "form: there is no such key. Did you mean from?"),
    ({"baseline": "gropo"}, "line 2: baseline: is 'gropo', which is not a variant. Write one of grpo, rloo."),
    ({"variants": {"grpo": {}, "two words": {}}}, "variants.two words: "),
    ({"variants": {"grpo": {}, "a,b": {}}}, "variants.a,b: holds a comma"),
    ({"variants": {"grpo": {"seed": 3}}}, "variants.grpo.seed: is set by the sweep. Write the seeds of all variants"),
    ({"variants": {"grpo": {"trl.beta": 1}}, "grid": {"trl.beta": [0]}}, "is also in the grid"),
    ({"environment": {"CUDA_VISIBLE_DEVICES": "2,3"}}, "environment.CUDA_VISIBLE_DEVICES: is set for every cell"),
    ({"executor": {"kind": "slrum"}}, "executor: is of another kind. Write kind: local or kind: slurm."),
    ({"executor": {"kind": "slurm"}}, "executor.time: is missing."),
]


@pytest.mark.parametrize(("changes", "expected"), REFUSALS, ids=[str(case[0]) for case in REFUSALS])
def test_what_cannot_work_is_refused_at_its_line(tmp_path: Path, changes: dict[str, Any], expected: str):
    with pytest.raises(Refusal) as refusal:
        load_sweep(sweep_file(tmp_path, **changes))
    assert expected in str(refusal.value)
    assert "compare.yaml" in str(refusal.value)
    if "is missing" not in expected:
        assert re.search(r"line \d+", str(refusal.value))


def test_cells_are_variants_by_points_by_seeds(tmp_path: Path):
    grid = {"trl.learning_rate": [1e-6, 0.001], "trl.loss_type": ["dapo"]}
    sweep, _ = load_sweep(sweep_file(tmp_path, grid=grid))
    cells = cells_of(sweep)
    assert [cell.name for cell in cells[:4]] == [
        "grpo,learning_rate=1e-6,loss_type=dapo-s0",
        "rloo,learning_rate=1e-6,loss_type=dapo-s0",
        "grpo,learning_rate=0.001,loss_type=dapo-s0",
        "rloo,learning_rate=0.001,loss_type=dapo-s0",
    ]
    assert cells[1].baseline == cells[0].variant
    assert cells[1].overrides == ["algorithm.advantage=rloo", "trl.learning_rate=1e-06", "trl.loss_type=dapo"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"grid": {"trl.loss_type": ["a b", "a/b"]}}, "two cells would be named grpo,loss_type=a_b-s0"),
        ({"seeds": [0, 0]}, "two cells would be named grpo-s0"),
        ({"grid": {"trl.loss_type": ["é" * 120]}}, "more than 255 bytes"),  # of two each
    ],
)
def test_names_that_no_folder_can_have_alone_are_refused(tmp_path: Path, changes: dict[str, Any], said: str):
    sweep, _ = load_sweep(sweep_file(tmp_path, **changes))
    with pytest.raises(Refusal, match=said):
        cells_of(sweep)


words = st.text("abcdefgh_0123456789-", min_size=1, max_size=6)
scalars = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8))
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))


@settings(deadline=None)  # the first example imports
@given(values)
def test_overrides_read_back_as_they_were_written(value: Any):
    origin = load_sweep(ROOT / "configs/sweeps/quickstart.yaml")[1].origin
    tree = overridden(Node({}, origin), f"trl.key={override_value(value)}")
    assert tree.plain() == {"trl": {"key": value}}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_variant_of_a_sweep_that_ships_is_a_run_and_compared_fairly(path: Path, tmp_path: Path):
    """Of branches, whose parents are runs that do not ship, as if they began where the parents do."""
    settings = YAML(typ="safe").load(path)
    if parents := settings.pop("from", None):
        with pytest.raises(Refusal) as caught:
            load_sweep(path)
        assert [found.key for found in caught.value.problems] == ["from"]
        begun = load_sweep(path.with_stem(Path(parents[0]).parts[2]))[0]
        path = tmp_path / path.name
        path.write_text(write({**settings, "config": begun.config, "seeds": begun.seeds}))
    sweep, tree = load_sweep(path)
    sweep = sweep.model_copy(update={"seeds": sweep.seeds[:1]})
    plans = plans_of(sweep, cells_of(sweep), tree)
    check_fair(sweep, plans, tree)
    assert "coverage" in sweep.outcomes or path.match("docket_*") or (plans[0].config.evaluation.samples or 1) < 2


LOPTI = {"algorithm.update_schedule": "lopti"}
HALF = {"algorithm.sequences_per_update": 64, "trl.per_device_train_batch_size": 64}


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
