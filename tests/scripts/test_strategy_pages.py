"""The pages of strategies: what they show to write builds, and what they say was measured is what the reports say."""

import re
import shlex
from functools import cache

import pytest
from ruamel.yaml import YAML

from evenkeel.trainer.algorithms.contract import PROMPT_SAMPLER
from evenkeel.trainer.algorithms.registry import strategy_table
from evenkeel.trainer.algorithms.strategies import build_strategies
from scripts.strategy_pages import strategy_pages
from tests.paths import ROOT
from tests.test_configs import run_of

BASELINE = ROOT / "configs/countdown/baseline.yaml"
PAGES = cache(strategy_pages)


@pytest.mark.parametrize(("kind", "name"), [(row["kind"], row["name"]) for row in strategy_table()])
def test_every_strategy_has_a_page_whose_first_block_builds_it(kind: str, name: str):
    page = PAGES()[f"strategies/{kind}/{name}.md"]
    written = YAML(typ="safe").load(re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)[0])
    assert build_strategies(**written["algorithm"]).names[kind] in (name, None)  # None: what changes nothing
    for command in re.findall(r"^evenkeel (.+)$", page, flags=re.MULTILINE):
        assert run_of(*shlex.split(command, comments=True)) == BASELINE
    formula = re.search(r"`[^`\n]*[=<][^`]*`", page.partition("**Source:**")[0])
    assert formula or kind == PROMPT_SAMPLER or name in ("uniform", "single_pass")
