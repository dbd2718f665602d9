"""Render a report as HTML that needs no network, and as Markdown. The text is in `templates/`."""

from pathlib import Path

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.page_templates import page_templates, style
from evenkeel.trainer.lab.reports.contents import Report, report_on
from evenkeel.trainer.lab.reports.tables import escaped, markdown_table
from evenkeel.trainer.lab.statistics.intervals import StatisticsError

TEMPLATES = Path(__file__).with_name("templates")


def write_report(directory: Path, output: Path | None = None) -> tuple[Report, Path]:
    """Report on a run's or a sweep's directory: HTML, and under the same name Markdown and its one picture as SVG.

    The HTML file is ``output``, or ``report.html`` in the directory.

    Raises:
        Refusal: there is nothing to report on, what there is cannot be compared, or ``output`` is no page's name.
    """
    page = output or directory / "report.html"
    if page.suffix in (".md", ".svg"):
        raise Refusal(f"{page} cannot be the page, which is HTML. Write {page.with_suffix('.html')}.")
    try:
        report = report_on(directory)
        html, summary = html_page(report), report.summary
    except StatisticsError as refusal:
        raise Refusal(f"The runs in {directory} cannot be compared: {refusal}") from refusal
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(html, encoding="utf-8")
    picture = page.with_suffix(".svg")
    if summary:
        picture.write_text(summary, encoding="utf-8")
    else:
        picture.unlink(missing_ok=True)  # of an earlier report
    text = markdown_page(report, picture=picture.name if summary else "")
    page.with_suffix(".md").write_text(text, encoding="utf-8")
    return report, page


def print_report(directory: Path, output: Path | None = None) -> int:
    """`write_report`, then print its verdicts and the paths of the pages; returns the exit status 0."""
    report, page = write_report(directory, output)
    print(report.headline)
    for contrast in report.main.contrasts if report.main else []:
        print(f"  {contrast.variant}, {contrast.outcome}: {contrast.verdict.sentence}")
    print(f"{page}\n{page.with_suffix('.md')}")
    return 0


def html_page(report: Report) -> str:
    """One HTML document: styles and pictures inside, no script, and a policy that forbids loading anything.

    The template engine escapes text by a policy; only our own pictures and styles are inserted unescaped.
    """
    template = page_templates(TEMPLATES).get_template("report.html.jinja")
    return template.render(report=report, style=style())


def markdown_page(report: Report, *, picture: str = "") -> str:
    """The verdict, tables, differences of configuration and notes; ``picture``: the picture's file beside it."""
    filters = {"escaped": escaped, "table": markdown_table}
    template = page_templates(TEMPLATES, autoescape=False, **filters).get_template("report.md.jinja")
    return template.render(report=report, picture=picture)
