"""The bench's table, JSON and page: every number in its place, nothing asked for, nothing cut off."""

import json
import math
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from evenkeel.trainer.command.gradients import main
from evenkeel.trainer.lab.gradients.bench import Bench, Measured
from evenkeel.trainer.lab.gradients.page import html_page
from tests.scripts.test_train import SETTINGS
from tests.trainer.lab.reports.chromium import visit
from tests.trainer.lab.reports.test_page import in_a_browser


def row(name: str, snr: float) -> Measured:
    return Measured(name, 0.5, 2.0, snr, math.nan, 0.01, [0.4, 0.3, 0.2, 0.1], 0.25, 1e-7, 0.002, 2, True)


FOUND = Bench(
    [row("grpo", 0.2), row("<low>", 0.1), row("none", math.nan), row("high", 0.3)],
    [[1.0, -0.44, math.nan, 0.96]] * 4,
    2,
    8,
    64,
    1_000,
    1.5,
    0.0,
    math.nan,
    {"ibpo": "needs <revisions>"},
)


def test_what_is_no_number_is_null_in_json():
    assert json.loads(json.dumps(FOUND.as_json(), allow_nan=False))["rows"][2]["signal_to_noise"] is None


def test_names_are_escaped():
    page = html_page(FOUND, "a <run>")
    assert "&lt;low&gt;" in page
    assert "needs &lt;revisions&gt;" in page
    assert "<low>" not in page


@in_a_browser
def test_a_browser_shows_the_heat_map_on_a_phone(tmp_path: Path):
    page = tmp_path / "gradients.html"
    page.write_text(html_page(FOUND, "a <run>"))
    beyond = (
        "[...document.querySelectorAll('body > *, .quarters *, .numbers *')]"
        ".filter(e => e.getBoundingClientRect().right > 400.5).map(e => e.outerHTML.slice(0, 80))"
    )
    colours = "[...document.querySelectorAll('.heat tr:first-child td')].map(e => getComputedStyle(e).backgroundColor)"
    seen = visit(page, tmp_path / "profile", [beyond, colours], width=400, dark=True)
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith("data:")] == [page.as_uri()]
    assert seen.answers[0] == []
    assert len(set(seen.answers[1])) == 3  # blue, orange, none


@pytest.mark.slow
def test_a_configurations_policy_is_sampled_and_replayed(tiny_model: Path, tmp_path: Path, capsys):
    settings = {
        **SETTINGS,
        "model": {"name_or_path": str(tiny_model)},
        "name": "bench",
        "output_dir": str(tmp_path / "r"),
    }
    file = tmp_path / "bench.yaml"
    YAML(typ="safe").dump(settings, file)
    asked = ["--strategies", "rloo,adv_reweight+lopti", "--batches", "3", "--to", str(tmp_path)]
    assert main([str(file), *asked]) == 0
    found = json.loads((tmp_path / "gradients.json").read_text())
    assert [each["name"] for each in found["rows"][:3]] == ["grpo", "rloo", "adv_reweight+lopti"]
    assert (found["batches"], found["groups"], found["rollouts"]) == (3, 12, 48)
    assert "| `rloo` |" in capsys.readouterr().out
    assert "<h2>Cosines" in (tmp_path / "gradients.html").read_text()
    assert not (tmp_path / "r").exists()
    assert main([str(tmp_path), "--strategies", "grpo"]) == 2  # no run's directory
