"""The bench's table, JSON and page: every number in its place, nothing asked for, nothing cut off."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from evenkeel.trainer.command.gradients import main
from evenkeel.trainer.lab.gradients.bench import Bench, Measured
from evenkeel.trainer.lab.gradients.page import html_page, shade, strategy_table
from evenkeel.trainer.lab.reports.tables import markdown_table
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


def test_the_table_begins_with_the_baseline_and_falls_by_signal_to_noise():
    lines = markdown_table(strategy_table(FOUND)).splitlines()
    assert [line.split("`")[1] for line in lines[2:]] == ["grpo", "high", "<low>", "none"]
    assert "| +0.500 | 2 | 0.3 | – | +0.01 | .40 .30 .20 .10 | 0.25 | 1e-07 | 2.0 | 2 + scores |" in lines[3]
    assert len({line.count("|") for line in lines}) == 1


def test_shades_are_of_the_size_and_the_sign():
    assert [shade(value) for value in (1.0, 0.44, 0.0, -0.96, math.nan)] == [
        "plus-10",
        "plus-4",
        "plus-0",
        "minus-10",
        "none",
    ]


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


@in_a_browser
@pytest.mark.slow
def test_a_heat_map_of_forty_strategies_fits_a_phone_and_names_its_columns(tmp_path: Path):
    rows = [row(f"exchangeable_token_class_{number}", 0.2) for number in range(40)]
    page = tmp_path / "gradients.html"
    page.write_text(html_page(replace(FOUND, rows=rows, cosines=[[0.9] * 40] * 40), "a <run>"))
    beyond = (
        "[...document.querySelectorAll('.heat *')].filter(e => e.getBoundingClientRect().right > innerWidth).length"
    )
    numbered = "[...document.querySelectorAll('.heat thead span')].filter(e => e.offsetWidth).map(e => e.textContent)"
    squares = "Math.min(...[...document.querySelectorAll('.heat td')].map(e => e.getBoundingClientRect().width))"
    seen = visit(page, tmp_path / "profile", [beyond, numbered, squares], width=400)
    assert seen.answers[:2] == [0, [str(number) for number in range(5, 41, 5)]]
    assert seen.answers[2] > 4


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
