"""The docket is the page that its script writes, and each of its claims can be run."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from evenkeel.trainer.lab.claims.certificate import SUFFIX
from evenkeel.trainer.lab.claims.claim import load_claim, load_sweep_of
from evenkeel.trainer.run.config import ConfigError
from scripts.docket import CLAIMS, PAGE, page

CLAIM = "claim: Order helps.\nsource: a paper\nsweep: {SWEEP}\nvariant: lopti\nagainst: [grpo]\nmatters: 0.02\n"


def test_the_page_is_the_one_that_is_printed():
    assert page(CLAIMS) == PAGE.read_text(encoding="utf-8"), "write it: python scripts/docket.py"


@pytest.mark.parametrize("path", sorted(CLAIMS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_claim_is_about_variants_of_its_sweep(path: Path):
    """Of branches all that is wrong is that their parents are not there: they are runs, which do not ship."""
    claim, tree = load_claim(path)
    of_branches = claim.sweep.endswith("_branches.yaml")
    with pytest.raises(ConfigError) if of_branches else nullcontext() as caught:
        load_sweep_of(claim, tree)
    if of_branches:
        assert {found.path for found in caught.value.problems} == {"from"}


def test_rows_are_read_off_certificates(tmp_path: Path):
    sweep = str(CLAIMS.parent / "sweeps" / "docket_order.yaml")
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.yaml").write_text(CLAIM.replace("{SWEEP}", sweep))
    difference = {"value": 0.0123, "low": -0.01, "high": 0.03, "num_seeds": 8, "num_items": 256}
    content = {"answer": "not decided", "differences": {"grpo": difference}, "seeds_needed": 17, "sha256": ""}
    content |= {"cost": {"cells": 24, "core_hours": 0.4, "tokens": 4.6e6}}
    content |= {"excludes_what_matters": False} | {kind: {} for kind in ("configs", "data", "code", "results")}
    (tmp_path / f"b{SUFFIX}").write_text(json.dumps(content))
    content |= {"answer": "supported", "differences": {"grpo": {**difference, "low": 0.011, "high": 0.013}}}
    (tmp_path / f"c{SUFFIX}").write_text(json.dumps({**content, "excludes_what_matters": True}))
    first, second, third = page(tmp_path).splitlines()[-3:]
    assert "| not run | `lopti` against `grpo` |" in first
    assert "| **not decided** | `lopti` − `grpo`: +0.012 [-0.010, +0.030], 8 seeds | 17 |" in second
    assert "| 24 cells, 0.40 core hours, 4.6 M tokens |" in second
    assert "| **supported**, by less than what matters | `lopti` − `grpo`: +0.012 [+0.011, +0.013], 8 seeds |" in third
