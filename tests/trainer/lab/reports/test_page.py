"""The page as a browser shows it, and what may never be in it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenkeel.trainer.lab.reports import Report, html_page, markdown_page, report_on, write_report
from evenkeel.trainer.lab.reports.columns import ACCURACY
from evenkeel.trainer.lab.reports.tables import Column, TableCell
from tests.trainer.lab.reports.chromium import EXECUTABLE, visit
from tests.trainer.lab.reports.recorded_sweep import HOSTILE, record_run, record_sweep

FIGURES = ["differences", "held_out", "reward", "groups", "diagnostics", "times", "length"]
in_a_browser = pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium here: apt-get install chromium")


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


@pytest.mark.slow
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
def test_on_a_phone_nothing_is_cut_off_and_words_in_pictures_can_be_read(page: Path, tmp_path: Path):
    beyond = (
        "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 400.5)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    scrolled = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
    smallest = "Math.min(...[...document.querySelectorAll('svg text')].map(e => e.getBoundingClientRect().height))"
    seen = visit(page, tmp_path / "profile", [beyond, scrolled, smallest, "innerWidth"], width=400)
    beyond_the_edge, tables_that_scroll, text_height, width = seen.answers
    assert (beyond_the_edge, tables_that_scroll, width) == ([], 0, 400)
    assert text_height >= 11


@pytest.mark.slow
@in_a_browser
def test_in_the_dark_pictures_are_dark_too(page: Path, tmp_path: Path):
    shades = (
        "(() => { const light = c => Math.max(...c.match(/[0-9.]+/g).slice(0, 3).map(Number));"
        "const style = e => getComputedStyle(e);"
        "const text = [...document.querySelectorAll('figure text')].map(e => light(style(e).fill));"
        "const white = [...document.querySelectorAll('figure path')]"
        ".filter(e => style(e).fill == 'rgb(255, 255, 255)');"
        "return [light(style(document.body).backgroundColor), Math.min(...text), white.length]; })()"
    )
    for dark in (True, False):
        seen = visit(page, tmp_path / f"profile-{dark}", [shades], dark=dark)
        ((ground, darkest_text, white_boxes),) = seen.answers
        assert white_boxes == 0
        assert (ground < 50, darkest_text > 200) == (dark, dark)


@pytest.mark.slow
@in_a_browser
def test_a_variants_name_is_not_broken_where_there_is_room(page: Path, tmp_path: Path):
    named = tmp_path / "named.html"
    named.write_text(page.read_text().replace(">lopti<", ">exchangeable_prefix_tree<"))
    lines = (
        "[...document.querySelectorAll('.numbers td:first-of-type a')].filter(e => e.textContent.includes('prefix'))"
        ".map(e => e.getClientRects().length)"
    )
    (found,) = visit(named, tmp_path / "profile", [lines], width=1280).answers
    assert set(found) == {1}


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
    assert not re.search(r"src=[\"'](?!data:)", text)
    ways = set(re.findall(r"href=[\"']((?!#|data:)[^\"']*)", text))
    assert ways == {f"{variant}-s{seed}/run/" for variant in ("grpo", "ar", "lopti") for seed in range(3)}


def test_ids_are_unique_over_all_figures(page: Path):
    ids = re.findall(r'\bid="([^"]+)"', page.read_text())
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'(?:href="#|url\(#)([^")]+)', page.read_text()))
    assert targets <= set(ids)


@pytest.mark.slow
def test_the_same_files_give_the_same_page(sweep: Path, page: Path):
    assert html_page(report_on(sweep)) == page.read_text()


def test_axes_say_what_they_show(page: Path):
    for words in ("rollout batches", "held-out accuracy, test", "entropy (nats a token)", "tokens of the completion"):
        assert f">{words}</text>" in page.read_text()


def test_markdown_gives_the_same_verdicts_and_holds_its_tables(report: Report):
    markdown = markdown_page(report)
    assert f"**{report.headline}**" in markdown
    for contrast in report.main.contrasts:
        assert f" {contrast.verdict.sentence} |" in markdown
    assert "| lopti | `trl.max_steps` | 20 | 40 |" in markdown
    tables = re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE)
    assert len(tables) == 8  # verdicts, accuracy, differences, cells, audit, disagreement, changes, provenance
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table


@pytest.fixture
def outer_column() -> Iterator[None]:
    """A column as a user's module would add it."""
    ACCURACY.append(Column("letters", lambda row: TableCell(f"{len(row.numbers.name)} letters", "of its name")))
    yield
    ACCURACY.pop()


@pytest.mark.slow
@pytest.mark.usefixtures("outer_column")
def test_a_column_from_outside_stands_in_both_pages(sweep: Path):
    report = report_on(sweep)
    for page in (html_page(report), markdown_page(report)):
        (head,) = [
            line for line in page.splitlines() if line.startswith(("<thead>", "| variant")) and "letters" in line
        ]
        assert head.index("area under curve") < head.index("letters")
        for letters in (4, 2, 5):  # grpo, ar, lopti
            assert f"{letters} letters" in page
        assert page.count("of its name") == 3


def test_cost_stands_beside_accuracy(report: Report):
    """Every run of the fixture: 1,000 tokens a rollout batch, 20 of them, 90 s on one process."""
    table = report.tables["accuracy"]
    titles = [heading.title for heading in table.headings]
    assert titles.index("tokens") == titles.index("final accuracy") + 1
    of_ar = dict(zip(titles, table.rows[1], strict=True))
    assert (of_ar["tokens"].text, of_ar["tokens"].note) == ("20,000", "× 1.00")
    assert of_ar["device seconds"].text == "90"


@pytest.mark.slow
def test_a_comparison_at_one_learning_rate_is_marked_as_such(report: Report):
    for page in (html_page(report), markdown_page(report)):
        assert "Compared at a single learning rate (1e-06)" in page


def test_a_number_leads_to_its_cells_and_these_to_their_files(sweep: Path, page: Path):
    text = page.read_text()
    for number, variant in enumerate(("grpo", "ar", "lopti")):
        assert text.count(f'<a href="#cells-{number}">') >= 3  # its name and final accuracy, in two tables
        row = re.search(rf'<tr id="cells-{number}">.*?</tr>', text).group()
        (way,) = re.findall(r'href="([^"]+)"', row)
        assert way == f"{variant}-s0/run/"
        assert (sweep / way / "metrics.jsonl").exists()


def test_elsewhere_a_page_links_to_no_files_and_its_picture_lies_beside_it(sweep: Path, tmp_path: Path):
    _, page = write_report(sweep, tmp_path / "published/three.html")
    assert "grpo-s0/run/" not in page.read_text()
    markdown = page.with_suffix(".md").read_text()
    assert "](three.svg)" in markdown
    assert "grpo-s0/run/" not in markdown
    svg = page.with_suffix(".svg").read_text()
    assert svg.startswith("<svg")
    for words in ("final accuracy, difference", "area under the curve, difference", "lopti"):
        assert f">{words}</text>" in svg


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
