"""Every chat template that TRL ships, with random conversations; and the page that shows their table."""

import re
from pathlib import Path

import pytest

from scripts.research.provenance import NAMES, scripted_trainer, tried, untried
from tests.paths import ROOT

PAGE = (ROOT / "docs/provenance.md").read_text()
TRIED = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
"""Those in the page's table."""


pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


@pytest.mark.parametrize("name", TRIED)
def test_a_thousand_conversations(name: str, tmp_path: Path):
    assert tried(scripted_trainer(name, tmp_path, seed=2), name, 1000).problems == []


def test_no_template_is_left_out_in_silence():
    """Each is in the page's table, or below it under TRL's reason."""
    absent = {
        name: reason
        for reason, names in re.findall(r"^Not tried, (.+?): (.+)\.$", PAGE, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    }
    assert {name: untried(name) for name in NAMES} == dict.fromkeys(TRIED) | absent
