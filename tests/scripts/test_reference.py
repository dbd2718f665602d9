"""The tables of the pages about run files and the page of commands are those that the code prints."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.config.schema import SpeedSection, VLLMSection
from evenkeel.trainer.step.options import Engine, Speed
from scripts.reference import TABLES
from tests.paths import ROOT
from tests.scripts.test_constraints import unpinned

PAGES = {
    "run": "docs/run_file.md",
    "sweep": "docs/sweep_file.md",
    "claim": "trainer/lab/README.md",
    "rules": "configs/README.md",
    "commands": "docs/commands.md",
    "metrics": "docs/metrics.md",
}


@pytest.mark.parametrize("table", TABLES)
def test_the_table_is_the_one_that_is_printed(table: str):
    if table in ("run", "sweep") and unpinned():
        pytest.skip(f"the page is made with other versions of {', '.join(unpinned())}")
    page = PAGES[table]
    assert TABLES[table]() in (ROOT / page).read_text(), f"paste into {page}: python scripts/reference.py {table}"


@pytest.mark.parametrize(("page", "load"), [("run", load_config), ("sweep", load_sweep)])
def test_the_example_of_a_page_is_such_a_file(page: str, load, tmp_path: Path):
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / PAGES[page]).read_text(), flags=re.DOTALL)
    (tmp_path / "example.yaml").write_text(example)
    load(tmp_path / "example.yaml")


def test_options_are_declared_once_and_differ_by_their_defaults_alone():
    differing = {}
    for name, kind, model in (("speed", Speed, SpeedSection), ("vllm", Engine, VLLMSection)):
        assert not [key for key in vars(model).get("__annotations__", {}) if key in model.model_fields], name
        own = {field.name: field.default for field in fields(kind)}
        assert model.model_fields.keys() <= own.keys()
        in_a_run = {key: field.default for key, field in model.model_fields.items()}
        differing |= {f"{name}.{key}": value for key, value in in_a_run.items() if own[key] != value}
    assert differing == {"speed.microbatches": "planned", "speed.skip_old_logps": None, "vllm.check_agreement_every": 1}
