"""The pages of strategies: what they show to write builds, and what they say was measured is what the reports say."""

import re
import shlex

import pytest
from ruamel.yaml import YAML

from evenkeel.trainer.algorithms.contract import PROMPT_SAMPLER
from evenkeel.trainer.algorithms.registry import strategy_table
from evenkeel.trainer.algorithms.strategies import build_strategies
from scripts.strategy_pages import strategy_pages
from tests.paths import ROOT
from tests.test_configs import run_of

BASELINE = ROOT / "configs/countdown/baseline.yaml"
PAGES = strategy_pages()


@pytest.mark.parametrize(("kind", "name"), [(row["kind"], row["name"]) for row in strategy_table()])
def test_every_strategy_has_a_page_whose_first_block_builds_it(kind: str, name: str):
    page = PAGES[f"strategies/{kind}/{name}.md"]
    written = YAML(typ="safe").load(re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)[0])
    assert build_strategies(**written["algorithm"]).names[kind] in (name, None)  # None: what changes nothing
    for command in re.findall(r"^evenkeel (.+)$", page, flags=re.MULTILINE):
        assert run_of(*shlex.split(command, comments=True)) == BASELINE
    formula = re.search(r"`[^`\n]*[=<][^`]*`", page.partition("**Source:**")[0])
    assert formula or kind == PROMPT_SAMPLER or name in ("uniform", "single_pass")


def test_what_was_measured_is_that_of_the_reports():
    assert (
        "`nsr` | 0.363 [0.316, 0.411] | −0.053 [−0.079, −0.027] | worse (5 seeds) |"
        in PAGES["strategies/advantage/nsr.md"]
    )
    page = PAGES["strategies/token_weight/adv_reweight.md"]
    assert re.findall(r"^\| \[(.+?)\].*?\| `(.+?)` \| (0\.\d+)", page, flags=re.MULTILINE) == [
        *(
            ("lag.yaml", f"ar,staleness={age}", accuracy)
            for age, accuracy in ((0, "0.429"), (1, "0.430"), (2, "0.419"), (4, "0.401"), (8, "0.384"))
        ),
        ("laptop.yaml", "ar", "0.413"),
        ("laptop.yaml", "ar_lopti", "0.414"),
        ("laptop_lengths.yaml", "ar", "0.348"),
        ("laptop_lengths.yaml", "ar_lopti", "0.355"),
        ("quickstart.yaml", "ar", "0.858"),
        ("quickstart.yaml", "ar_lopti", "0.862"),
    ]
    assert "average .53 (GRPO: .39). Not measured here." in page
    assert "name=adv_reweight 'algorithm.token_weight={name: adv_reweight, alpha: 0.2}'" in page
