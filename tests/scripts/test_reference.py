"""The tables of the pages about run files and the page of commands are those that the code prints."""

import re
from pathlib import Path

import pytest

from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.run.config import load_config
from scripts.reference import TABLES
from tests.paths import ROOT
from tests.scripts.test_constraints import unpinned

PAGES = {
    "run": "docs/run_file.md",
    "sweep": "docs/sweep_file.md",
    "claim": "trainer/lab/README.md",
    "rules": "configs/README.md",
    "commands": "docs/commands.md",
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
