"""Before the first cell: every distinct merged file of a sweep is checked, once, and what is wrong named by variant."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.command.sweep import main as sweep
from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory
from evenkeel.trainer.lab.sweeps.cells import cells_of
from evenkeel.trainer.lab.sweeps.checking import check_outcomes, checked_plans
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.plans import plans_of
from evenkeel.trainer.run.config.yaml_document import write
from tests.paths import ROOT

GENERATOR = """
def counted(*, part: str = "train") -> list[dict[str, str]]:
    with open("asked.txt", "a") as file:
        file.write(part)
    numbers = range(64) if part == "train" else range(64, 80)
    return [{"prompt": f"{number} + 1 = ?", "reference": str(number + 1)} for number in numbers]
"""


def written(folder: Path, variants: dict[str, Any], base: str = "", **changes: Any) -> str:
    (folder / "base.yaml").write_text(f"extends: {ROOT / 'configs/quickstart.yaml'}\n{base}")
    described = {"config": "base.yaml", "baseline": "grpo", "seeds": [0, 1], "variants": {"grpo": {}, **variants}}
    (folder / "compare.yaml").write_text(write({**described, **changes}))
    return str(folder / "compare.yaml")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_variants_whose_cells_would_be_refused_are_named_before_the_first_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    variants = {
        "model": {"model.name_or_path": "./absent"},
        "data": {"data.train": {"generator": None, "path": "absent.jsonl"}},
        "length": {"trl.max_completion_length": 100_000},
    }
    assert sweep(["run", written(tmp_path, variants, unfair=["data.train", "trl.max_completion_length"])]) == 2
    said = capsys.readouterr().err
    for words in (
        r"model: .*compare\.yaml, line \d+: variants\.model\.model.*not a folder",
        r"data: .*absent\.jsonl",
        r"length: .*compare\.yaml, line \d+: variants\.length\.trl\.max_completion_length",
    ):
        assert re.search(f"^{words}", said, flags=re.MULTILINE), said
    assert not (tmp_path / "runs").exists()


LACKING = {"tax": "before beta", "drift_between_right_answers": "samples before", "jitter": "every_steps"}


@pytest.mark.parametrize(
    ("base", "lacking"),
    [
        ("evaluation: {before: false}\n", LACKING),
        ("evaluation: {every_steps: 20, samples: 2}\ntrl: {beta: 1e-12}\n", {}),  # of 25: before, at 20, at the end
    ],
)
def test_outcomes_that_no_cell_would_record_are_refused_with_what_to_write(
    tmp_path: Path, base: str, lacking: dict[str, str]
):
    loaded, tree = load_sweep(written(tmp_path, {}, base, outcomes=[*LACKING, "residual"]))
    found = []
    try:
        check_outcomes(loaded, plans_of(loaded, cells_of(loaded), tree), tree)
    except Refusal as refusal:
        found = refusal.problems
    settings = [" ".join(re.findall(r"(?:evaluation|trl)\.(\w+)", each.instead)) for each in found]
    assert settings == [*lacking.values()]
    assert all(f"names {name}, " in each.what for name, each in zip(lacking, found, strict=True))


def test_rows_that_variants_share_are_made_once_under_the_variables_of_the_sweep(tmp_path: Path):
    (tmp_path / "counting_rows.py").write_text(GENERATOR)
    (tmp_path / "policy").symlink_to(ROOT / "configs/tiny_policy/countdown")
    rows = {part: {"generator": {"name": "counting_rows:counted", "part": part}} for part in ("train", "test")}
    base = (
        f"model: {{name_or_path: $POLICIES/policy}}\ndata: {json.dumps(rows)}\nrewards: [{{verifier: exact_match}}]\n"
    )
    file = written(tmp_path, {"other": {"trl.learning_rate": 0.001}}, base, environment={"POLICIES": str(tmp_path)})
    loaded, tree = load_sweep(file)
    (plans,) = checked_plans(tree, loaded)
    assert len(plans) == 2 * 2
    assert (tmp_path / "asked.txt").read_text() == "traintest"


def test_a_cell_is_named_and_not_run_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = written(tmp_path, {"other": {"trl.learning_rate": 1e-4}})
    for name in ("grpo-s0", "grpo-s1", "other-s0", "other-s1"):
        run = tmp_path / "runs/sweeps/compare" / name / "run"
        run.mkdir(parents=True)
        (run / "summary.json").write_text('{"optimizer_steps": 3}')
    assert sweep(["run", file]) == 0
    assert sweep(["cell", file, "other-s2"]) == 2
    said = capsys.readouterr()
    assert "other-s1" in said.err
    assert "grpo-s0" in said.out
    assert sweep(["cell", file, "other-s1"]) == 0
    table = capsys.readouterr().out
    assert "other-s1" in table
    assert "grpo-s0" not in table
    with CellDirectory(run.parent).held():
        assert sweep(["cell", file, "other-s1"]) == 2
    assert "other-s1 is running" in capsys.readouterr().err
