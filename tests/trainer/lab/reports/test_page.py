"""The page and its pictures, and what may never be in them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.reports.contents import Report, report_on
from evenkeel.trainer.lab.reports.figures import Curve, curves_figure, differences_figure, panel_figures
from evenkeel.trainer.lab.reports.held_out import read_answers
from evenkeel.trainer.lab.reports.page import html_page, markdown_page
from tests.trainer.lab.reports.recorded_sweep import record_run, record_sweep


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_on(record_sweep(tmp_path_factory.mktemp("sweeps") / "sweep", effects={"ar": 1.2}, seeds=(0, 1, 2)))


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return html_page(report)


def test_completions_stand_in_the_page_as_text(page: str):
    assert "&lt;script&gt;document.title=" in page
    assert not re.search(r"<script|<img|<link(?! rel=\"icon\" href=\"data:,\")|<iframe|\bon\w+=[\"']|@import", page)
    assert not re.search(r"src=[\"'](?!data:)", page)
    assert set(re.findall(r"href=[\"']((?!#|data:)[^\"']*)", page)) == set()


def test_ids_are_unique_over_all_figures(page: str):
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'(?:href="#|url\(#)([^")]+)', page))
    assert targets <= set(ids)


def test_markdown_gives_the_same_verdicts_and_holds_its_tables(report: Report):
    markdown = markdown_page(report)
    assert f"**{report.headline}**" in markdown
    for contrast in report.main.contrasts:
        assert f" {contrast.verdict.sentence} |" in markdown
    assert "| lopti | `trl.max_steps` | 20 | 40 |" in markdown
    tables = re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE)
    assert len(tables) == 6  # verdicts, accuracy, cells, audit, changes, provenance
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table


def test_a_run_is_told_as_to_a_colleague(tmp_path: Path):
    """What was trained, its evaluations' accuracies, three completions, a fault in its log: no word of a sweep."""
    run = record_run(tmp_path / "run", "one run")
    with (run / "metrics.jsonl").open("a") as log:
        log.writelines(f'{{"step": {step}, "reward": 0.5, "learning_rate": 0.0}}\n' for step in (21, 22, 23))
    report = report_on(run)
    page, markdown = html_page(report), markdown_page(report)
    assert all(said in page for said in ("one seed gives no verdict", "optimizer step"))
    for text in (page[page.index("<body>") :], markdown):
        assert not re.search(r"\b(cells?|variants?|seeds|thresholds?|baseline|sweep)\b", text)
        assert all(said in text for said in ("somewhere/model", "somewhere/rows", "learning-rate-zero"))
    for at in ("00", "20"):
        found = json.loads((run / f"evaluations/test/step-0000{at}.json").read_text())["avg@1"]
        assert f"| {found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}] |" in markdown
    assert [group.title.split()[0] for group in report.samples] == ["Right", "Wrong", "Unscored"]
    answered = read_answers(run / "evaluations/test/step-000020.parquet").counted
    firsts = [next(row for row in answered if row["correct"] is found) for found in (True, False, None)]
    assert [group.samples[0][2] for group in report.samples] == firsts


@pytest.mark.parametrize("name", ["_under", r"a$\frac$", "a$b$c"])
def test_any_name_stands_in_the_legend(name: str):
    line = np.array([0.0, 1.0])
    curves = {name: Curve(line, line, line, line), "other": Curve(line, line, line, line)}
    styles = {name: number for number, name in enumerate(curves)}
    values = {label: Estimate(0.5, 0.4, 0.6, 3, None, 0.0, 0.0) for label in curves}
    for svg in (
        curves_figure("c", curves, "x", "y", styles),
        panel_figures("p", {"title": curves}, "x", styles)[-1],
        differences_figure("b", values, "x", styles),
    ):
        assert f">{name}</text>" in svg
