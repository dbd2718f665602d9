"""The page as a browser shows it, and what may never be in it."""

import re
from pathlib import Path

import pytest

from tests.trainer.comparison.reports.chromium import EXECUTABLE, visit
from tests.trainer.comparison.reports.recorded_sweep import HOSTILE, record_run, record_sweep
from trainer.comparison.reports import html_page, markdown_page, report_on

FIGURES = ["differences", "held_out", "reward", "groups", "diagnostics", "length"]
in_a_browser = pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium here: apt-get install chromium")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_sweep(tmp_path_factory.mktemp("sweeps") / "sweep", effects={"ar": 1.2}, seeds=(0, 1, 2))


@pytest.fixture(scope="module")
def page(sweep: Path) -> Path:
    path = sweep / "report.html"
    path.write_text(html_page(report_on(sweep)))
    return path


@in_a_browser
def test_a_browser_shows_all_figures_without_a_request_or_a_complaint(page: Path, tmp_path: Path):
    drawn = "[...document.querySelectorAll('figure')].map(f => [f.id, f.querySelector('svg').getBBox().width > 100])"
    fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    seen = visit(page, tmp_path / "profile", [drawn, "document.title", fits, "document.scripts.length"])
    assert [url for url in seen.requests if not url.startswith("data:")] == [page.as_uri()]
    assert seen.complaints == []
    figures, title, fits_the_window, scripts = seen.answers
    assert dict(figures) == {f"figure-{name}": True for name in FIGURES}
    assert title == "three <ways>: sweep"  # not "owned": no completion came to run
    assert fits_the_window
    assert scripts == 0


@in_a_browser
def test_the_browser_would_have_noticed(page: Path, tmp_path: Path):
    """Without escaping, a completion would ask for its picture and be refused, loudly."""
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text().replace("</h1>", f"</h1>{HOSTILE}"))
    seen = visit(broken, tmp_path / "profile", ["document.title", "document.scripts.length"])
    assert seen.complaints
    assert seen.answers == ["three <ways>: sweep", 1]  # the policy did not let the script run


def test_completions_stand_in_the_page_as_text(page: Path):
    text = page.read_text()
    assert "&lt;script&gt;document.title=" in text
    assert not re.search(r"<script|<img|<link(?! rel=\"icon\" href=\"data:,\")|<iframe|\bon\w+=[\"']|@import", text)
    assert not re.search(r"(?:src|href)=[\"'](?!#|data:)", text)


def test_ids_are_unique_over_all_figures(page: Path):
    ids = re.findall(r'\bid="([^"]+)"', page.read_text())
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'(?:href="#|url\(#)([^")]+)', page.read_text()))
    assert targets <= set(ids)


def test_the_same_files_give_the_same_page(sweep: Path, page: Path):
    assert html_page(report_on(sweep)) == page.read_text()


def test_axes_say_what_they_show(page: Path):
    for words in ("rollout batches", "held-out accuracy, test", "entropy (nats a token)", "tokens of the completion"):
        assert f">{words}</text>" in page.read_text()


def test_markdown_gives_the_same_verdicts_and_holds_its_tables(sweep: Path):
    report = report_on(sweep)
    markdown = markdown_page(report)
    assert f"**{report.headline}**" in markdown
    for contrast in report.main.contrasts:
        assert f"| {contrast.verdict.sentence} |" in markdown
    assert "| lopti | `trl.max_steps` | 20 | 40 |" in markdown
    tables = re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE)
    assert len(tables) == 4
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table


def test_a_single_run_gives_no_verdict(tmp_path: Path):
    report = report_on(record_run(tmp_path / "run", "one run"))
    page = html_page(report)
    assert "one seed gives no verdict" in page
    assert "Differences from the baseline" not in page
    assert "optimizer step" in page
    assert [group.title.split()[0] for group in report.samples] == ["Right", "Wrong", "Unjudged"]


def test_an_older_run_says_what_it_lacks(tmp_path: Path):
    """A run that kept neither completions nor named held-out sets, nor evaluated more than once."""
    run = record_run(tmp_path / "run", "old", per_item=False, finished=False)
    lines = ['{"step": 0, "eval_verifier/countdown/accuracy": 0.4}', '{"step": 1, "reward": NaN, "kl": null}', '{"step']
    (run / "metrics.jsonl").write_text("\n".join(lines))
    (run / "manifest.json").unlink()
    page = html_page(report_on(run))
    assert "not finished" in page
    assert "per-item results" in page
    assert "0.400" in page
