"""The page, and what may never be in it."""

import re
from pathlib import Path

import pytest

from evenkeel.trainer.lab.reports.contents import Report, report_on
from evenkeel.trainer.lab.reports.page import html_page, markdown_page
from tests.trainer.lab.reports.recorded_sweep import record_run, record_sweep


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_sweep(tmp_path_factory.mktemp("sweeps") / "sweep", effects={"ar": 1.2}, seeds=(0, 1, 2))


@pytest.fixture(scope="module")
def report(sweep: Path) -> Report:
    return report_on(sweep)


@pytest.fixture(scope="module")
def page(sweep: Path, report: Report) -> Path:
    path = sweep / "report.html"
    path.write_text(html_page(report))
    return path


def test_completions_stand_in_the_page_as_text(page: Path):
    text = page.read_text()
    assert "&lt;script&gt;document.title=" in text
    assert not re.search(r"<script|<img|<link(?! rel=\"icon\" href=\"data:,\")|<iframe|\bon\w+=[\"']|@import", text)
    assert not re.search(r"src=[\"'](?!data:)", text)
    ways = set(re.findall(r"href=[\"']((?!#|data:)[^\"']*)", text))
    assert ways == set()


def test_ids_are_unique_over_all_figures(page: Path):
    ids = re.findall(r'\bid="([^"]+)"', page.read_text())
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'(?:href="#|url\(#)([^")]+)', page.read_text()))
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


def test_a_single_run_gives_no_verdict(tmp_path: Path):
    report = report_on(record_run(tmp_path / "run", "one run"))
    page = html_page(report)
    assert "one seed gives no verdict" in page
    assert "Differences from the baseline" not in page
    assert "optimizer step" in page
    assert {group.title.split()[0] for group in report.samples} == {"Right", "Wrong", "Unscored"}
