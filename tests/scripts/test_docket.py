"""The docket is the page that its script writes, and each of its claims can be run."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.claims.claim import load_claim, load_sweep_of
from scripts.docket import CLAIMS, PAGE, page


def test_the_page_is_the_one_that_is_printed():
    assert page(CLAIMS) == PAGE.read_text(encoding="utf-8"), "write it: python scripts/docket.py"


@pytest.mark.parametrize("path", sorted(CLAIMS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_claim_is_about_variants_of_its_sweep(path: Path):
    """Of branches all that is wrong is that their parents are not there: they are runs, which do not ship."""
    claim, tree = load_claim(path)
    of_branches = claim.sweep.endswith("_branches.yaml")
    with pytest.raises(Refusal) if of_branches else nullcontext() as caught:
        load_sweep_of(claim, tree)
    if of_branches:
        assert {found.key for found in caught.value.problems} == {"from"}
