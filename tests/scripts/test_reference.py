"""Pages that scripts write: they are what is printed, their examples are such files, and what they name is there."""

import re
import shlex
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from evenkeel.errors import Refusal
from evenkeel.trainer.algorithms.contract import PROMPT_SAMPLER
from evenkeel.trainer.algorithms.registry import strategy_table
from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.lab.claims.claim import load_claims, load_sweep_of
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.run.config import load_config
from scripts.docket import CLAIMS, PAGE, page
from scripts.reference import TABLES
from scripts.strategy_pages import strategy_pages
from tests.paths import ROOT
from tests.scripts.test_constraints import unpinned
from tests.test_configs import run_of

PAGES = {
    "run": "docs/run_file.md",
    "sweep": "docs/sweep_file.md",
    "claim": "trainer/lab/README.md",
    "rules": "configs/README.md",
    "commands": "docs/commands.md",
    "outcomes": "trainer/lab/README.md",
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


def test_the_page_is_the_one_that_is_printed():
    assert page(CLAIMS) == PAGE.read_text(encoding="utf-8"), "write it: python scripts/docket.py"


@pytest.mark.parametrize("path", sorted(CLAIMS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_claim_is_about_variants_of_its_sweep(path: Path):
    """Of branches all that is wrong is that their parents are not there: they are runs, which do not ship."""
    claims, sweep = load_claims(path)
    of_branches = sweep.name.endswith("_branches.yaml")
    with pytest.raises(Refusal) if of_branches else nullcontext() as caught:
        load_sweep_of(claims, sweep)
    if of_branches:
        assert {found.key for found in caught.value.problems} == {"from"}


BASELINE = ROOT / "configs/countdown/baseline.yaml"
STRATEGY_PAGES = cache(strategy_pages)


@pytest.mark.parametrize(("kind", "name"), [(row["kind"], row["name"]) for row in strategy_table()])
def test_every_strategy_has_a_page_whose_first_block_builds_it(kind: str, name: str):
    page = STRATEGY_PAGES()[f"strategies/{kind}/{name}.md"]
    written = YAML(typ="safe").load(re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)[0])
    assert build_strategies(**written["algorithm"]).names[kind] in (name, None)  # None: what changes nothing
    for command in re.findall(r"^evenkeel (.+)$", page, flags=re.MULTILINE):
        assert run_of(*shlex.split(command, comments=True)) == BASELINE
    formula = re.search(r"`[^`\n]*[=<][^`]*`", page.partition("**Source:**")[0])
    assert formula or kind == PROMPT_SAMPLER or name in ("uniform", "single_pass")
