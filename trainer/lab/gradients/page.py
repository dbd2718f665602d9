"""The results of the gradient bench as a table and as one HTML page: cosines as a heat map, shares by quartile."""

import math
from pathlib import Path

from evenkeel.trainer.lab.gradients.bench import Bench, Measured
from evenkeel.trainer.lab.gradients.jackknife import stated
from evenkeel.trainer.lab.page_templates import page_templates, style
from evenkeel.trainer.lab.reports.tables import Table, TableCell, plain_table

TEMPLATES = Path(__file__).with_name("templates")
COLUMNS = {
    "cosine": "cosine with grpo's gradient on the same prompts",
    "norm": "length of the gradient, grpo's = 1",
    "SNR": "‖E g‖² / tr Cov(g) of one prompt's gradient, unbiased over pairs of prompts; ± half of its 95 % interval",
    "alignment": "cosine of the expected gradient with that of p(correct), without noise; 1 = no bias; ± as for SNR",
    "Δp": "change of p(correct) to first order per unit of length moved along the update",
    "q1…q4": "shares of the update by π_old: [0, ¼), [¼, ½), [½, ¾), [¾, 1]",
    "shared": "share of the update on tokens that a whole group begins with",
    "residual": "share of those tokens' contributions that does not cancel when a batch is one optimizer step",
    "ms": "milliseconds for advantages and weights of a batch",
    "steps": "optimizer steps a batch",
}
"""Column → what it is."""


def cells(row: Measured) -> list[str]:
    """The numbers of a row, in the order of `COLUMNS`."""
    quarters = " ".join("–" if math.isnan(share) else f"{share:.2f}".lstrip("0") for share in row.quartiles)
    return [
        _number(row.cosine, "+.3f"),
        _number(row.norm, ".3g"),
        _number(row.signal_to_noise, ".3g") + stated(row.signal_to_noise_margin),
        _number(row.alignment, "+.2f") + stated(row.alignment_margin),
        _number(row.gain, "+.2g"),
        quarters,
        _number(row.shared, ".2f"),
        _number(row.residual, ".1g"),
        _number(1000 * row.seconds, ".1f"),
        f"{row.passes}" + (" + scores" if row.scores else ""),
    ]


def strategy_table(found: Bench) -> Table:
    """A row a strategy, by falling SNR below the baseline."""
    rows: list[list[str | TableCell]] = [[TableCell(row.name, is_code=True), *cells(row)] for row in ordered(found)]
    return plain_table("By strategy", ["strategy", *COLUMNS], rows)


def ordered(found: Bench) -> list[Measured]:
    """The baseline, then the others by falling signal to noise; what has none comes last."""
    first, *rest = found.rows
    return [first, *sorted(rest, key=lambda row: math.inf if math.isnan(row.signal_to_noise) else -row.signal_to_noise)]


def html_page(found: Bench, name: str) -> str:
    """The page: no script, and nothing from elsewhere."""
    templates = page_templates(TEMPLATES, cosine=lambda value: _number(value, "+.2f"), shade=shade)
    return templates.get_template("page.html.jinja").render(
        found=found,
        name=name,
        columns=COLUMNS,
        by_strategy=strategy_table(found),
        rows=[(row, cells(row)[list(COLUMNS).index("q1…q4")]) for row in ordered(found)],
        style=style(TEMPLATES / "gradients.css"),
    )


def shade(cosine: float) -> str:
    """Class of a heat map's cell: one of ten shades of blue (same direction) or orange (opposite)."""
    if not math.isfinite(cosine):
        return "none"
    return f"{'plus' if cosine >= 0 else 'minus'}-{min(10, round(abs(cosine) * 10))}"


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "–"
