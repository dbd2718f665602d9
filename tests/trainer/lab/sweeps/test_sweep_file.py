"""The sweep's YAML file: what it unfolds into, and what is said about a wrong one."""

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
from evenkeel.trainer.lab.sweeps.plans import plans_of
from evenkeel.trainer.lab.sweeps.schema import LocalExecution
from evenkeel.trainer.run.config.layers import overridden
from evenkeel.trainer.run.config.yaml_document import Node, write
from tests.paths import ROOT

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
    ("changes", "name"),
    [({"grid": {"trl.loss_type": ["a b", "a/b"]}}, "grpo,loss_type=a_b-s0"), ({"seeds": [0, 0]}, "grpo-s0")],
)
def test_two_cells_of_one_name_are_refused(tmp_path: Path, changes: dict[str, Any], name: str):
    sweep, _ = load_sweep(sweep_file(tmp_path, **changes))
    with pytest.raises(Refusal, match=f"two cells would be named {name}"):
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
    if settings.pop("from", None):
        with pytest.raises(Refusal) as caught:
            load_sweep(path)
        assert [found.key for found in caught.value.problems] == ["from"]
        begun = load_sweep(path.with_stem(path.stem.replace("branches", "parents")))[0]
        path = tmp_path / path.name
        path.write_text(write({**settings, "config": begun.config, "seeds": begun.seeds}))
    sweep, tree = load_sweep(path)
    sweep = sweep.model_copy(update={"seeds": sweep.seeds[:1]})
    plans = plans_of(sweep, cells_of(sweep), tree)
    check_fair(sweep, plans, tree)
    assert "coverage" in sweep.outcomes or path.match("docket_*") or (plans[0].config.evaluation.samples or 1) < 2
