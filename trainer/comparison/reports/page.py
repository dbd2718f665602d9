"""How a report looks: HTML that needs nothing from the network, and Markdown. The text is in `templates/`."""

import math
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from trainer.comparison.reports.contents import Report, report_on
from trainer.comparison.reports.run_files import ReportError
from trainer.statistics import Estimate, StatisticsError

TEMPLATES = Path(__file__).with_name("templates")
NOTHING = "–"


def write_report(directory: Path, output: Path | None = None, threshold: float | None = None) -> tuple[Report, Path]:
    """Report on a run's or a sweep's directory; write HTML, and Markdown beside it under the same name.

    Args:
        output: the HTML file; without it ``report.html`` in the directory.
        threshold: see `report_on`.

    Raises:
        ReportError: there is nothing to report on, or what there is cannot be compared.
    """
    try:
        report = report_on(directory, threshold)
    except StatisticsError as refusal:
        raise ReportError(f"The runs in {directory} cannot be compared: {refusal}") from refusal
    page = output or directory / "report.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(html_page(report))
    page.with_suffix(".md").write_text(markdown_page(report))
    return report, page


def html_page(report: Report) -> str:
    """One HTML document: styles and pictures inside, no script, and a policy that forbids loading anything.

    Whatever a policy wrote is escaped by the template engine; only our own pictures and styles are put in as they are.
    """
    template = _environment(escaped=True).get_template("report.html.jinja")
    style = Markup((TEMPLATES / "style.css").read_text())
    svg = {name: Markup(picture.svg) for name, picture in report.pictures.items()}
    return template.render(report=report, style=style, svg=svg)


def markdown_page(report: Report) -> str:
    """The verdict, the tables, the configurations' differences and the notes, for a README or a pull request."""
    return _environment(escaped=False).get_template("report.md.jinja").render(report=report)


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many decimals, or a dash for none."""
    return NOTHING if value is None or not math.isfinite(value) else f"{value:.{digits}f}".replace("-", "−")


def signed(value: float) -> str:
    """A difference with its sign."""
    return number(value) if value < 0 else f"+{number(value)}"


def count(value: float | None) -> str:
    """A number of steps or tokens."""
    return NOTHING if value is None else f"{value:,.0f}" if value >= 10 else f"{value:g}"


def interval(low_high: Any) -> str:
    """``[low, high]``, of an estimate or a pair; empty where there is none."""
    low, high = (low_high.low, low_high.high) if isinstance(low_high, Estimate) else low_high or (math.nan, math.nan)
    return "" if math.isnan(low) else f"[{number(low)}, {number(high)}]"


def p_value(value: float) -> str:
    """A p with three digits that say something."""
    return NOTHING if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3g}"


def cell(text: Any) -> str:
    """Text inside a Markdown table: on one line, and no end of the cell."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _environment(*, escaped: bool) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = {"number": number, "signed": signed, "count": count, "interval": interval, "p_value": p_value}
    environment.filters.update(filters, cell=cell)
    return environment
