"""The tables of a report, in the order of the page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenkeel.trainer.evaluation.differences import verdict_of
from evenkeel.trainer.lab.reports.accuracies import final_accuracies, is_scored, mean_accuracies
from evenkeel.trainer.lab.reports.comparison import Comparison
from evenkeel.trainer.lab.reports.outcomes import ACCURACY, OUTCOMES, Outcome
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns
from evenkeel.trainer.lab.reports.tables import (
    EMPTY,
    NOTHING,
    Cells,
    Heading,
    Table,
    TableCell,
    count,
    difference,
    estimate,
    number,
    p_value,
    table_of,
)
from evenkeel.trainer.lab.reports.verifier_audit import Audit

MOST_DIFFERENCES = 50


def comparison_tables(comparisons: Sequence[Comparison]) -> Iterator[tuple[str, Table]]:
    """Name → table: the verdicts, the numbers, and the verdicts on further held-out sets."""
    count = sum(found.num_tests for found in comparisons)
    for position, found in enumerate(comparisons):
        if position:
            yield f"held-out-{position}", _verdict_table(f"Held-out set {found.dataset}", found, ACCURACY, count)
            continue
        for name in dict.fromkeys(contrast.outcome for contrast in found.contrasts):
            yield _verdicts(OUTCOMES[name], found, count)
        yield "accuracy", _accuracy_table(found)


def _verdicts(outcome: Outcome, found: Comparison, count: int) -> tuple[str, Table]:
    if outcome is ACCURACY:
        return "verdicts", _verdict_table("Verdict", found, outcome, count, _verdict_caption(found))
    good = "more" if outcome.sign > 0 else "less"
    caption = f"{found.dataset}: {outcome.definition} In {outcome.unit}; {good} is better."
    return f"outcome-{outcome.name}", _verdict_table(f"Outcome: {outcome.name}", found, outcome, count, caption)


def _verdict_table(title: str, found: Comparison, outcome: Outcome, count: int, caption: str = "") -> Table:
    """``count``: comparisons of the report."""
    contrasts = {contrast.variant: contrast for contrast in found.contrasts_in(outcome.name)}
    baselines = {contrast.baseline for contrast in found.contrasts}
    headings = (
        "variant",
        Heading("final accuracy" if outcome is ACCURACY else outcome.name, "mean, 95 %"),
        Heading("difference", "paired by seed, 95 %"),
        Heading("p, Holm", f"of {count}"),
        Heading("verdict", is_prose=True),
    )
    rows = []
    for each in found.variants:
        contrast = contrasts.get(each.name)
        mean = each.final if outcome is ACCURACY else contrast.mean if contrast else None
        row = [TableCell(each.name), estimate(mean)]
        if contrast is None:
            is_baseline = each.name in baselines
            said = TableCell("baseline", badge="baseline") if is_baseline else TableCell("not compared")
            row += [EMPTY, EMPTY, said]
        else:
            verdict = contrast.verdict
            row += [difference(contrast.difference), TableCell(p_value(contrast.adjusted_p))]
            row.append(TableCell(verdict.sentence, badge=verdict.outcome))
        rows.append(row)
    return table_of(title, headings, rows, caption)


def _accuracy_table(found: Comparison) -> Table:
    compared = bool(found.contrasts_in("accuracy"))
    headings: list[str | Heading] = [
        "variant",
        "seeds",
        "start",
        Heading("final accuracy", "mean, 95 %"),
        Heading("tokens", "a run"),
        Heading("device seconds", "a run"),
        Heading("area under curve", "mean height"),
        *([Heading("area, difference", "paired by seed, 95 %")] if compared else []),
    ]
    rows: list[Cells] = []
    for each in found.variants:
        contrast = found.contrast_of(each.name)
        baseline = next((other for other in found.variants if contrast and other.name == contrast.baseline), each)
        rows.append(
            [
                each.name,
                str(each.final.num_seeds),
                number(each.start.value if each.start else None),
                estimate(each.final),
                _cost(each.tokens, baseline.tokens if contrast else None),
                _cost(each.device_seconds, baseline.device_seconds if contrast else None),
                estimate(each.area),
                *([difference(contrast.area) if contrast else EMPTY] if compared else []),
            ]
        )
    by_item = found.variants[0].final.num_items is not None
    one = " and items; of a single seed Wilson’s interval over items" if by_item else ""
    caption = (
        f"Held-out accuracy on {found.dataset}: t intervals over seeds{one}; of two seeds their values. "
        "Cost: tokens of prompts and completions, wall time × processes; × the baseline’s."
    )
    return table_of("Accuracy and cost", headings, rows, caption)


def learned_table(run: RecordedRun) -> Table | None:
    """Each metric of the last evaluation beside its value before training; ``None`` without an evaluation."""
    step = max(map(max, run.evaluations.values()), default=0)
    rows = [(data, metric, str(size), first or NOTHING, last) for data, metric, size, first, last in run.results(step)]
    headings = ("held-out set", "metric", "rows", "before training", f"after step {step}")
    caption = (
        "With 95 % intervals over the rows. avg@k: share of k completions a row that are right; pass@k: of rows that "
        "one of k solves; maj@k: that the most frequent answer solves; greedy: of most probable tokens, one a row."
    )
    return table_of("Did it learn?", headings, rows, caption) if rows else None


def _cost(spent: float | None, baseline: float | None) -> TableCell:
    """A mean over seeds; for a variant with a baseline also as a multiple of the baseline's."""
    return TableCell(count(spent), f"× {spent / baseline:.2f}" if spent is not None and baseline else "")


def _verdict_caption(found: Comparison) -> str:
    items = found.contrasts_in("accuracy")[0].difference.num_items
    pairing = "seed" + (f" and item ({items} items)" if items else "")
    return (
        f"Difference of final accuracy on {found.dataset}, paired by {pairing}; better or worse only where its 95 % "
        "interval excludes 0, and of three seeds or more. p: how often equals differ as much, adjusted by Holm for the "
        "number of comparisons. Both assume that the means of the seeds are about normally distributed."
    )


def tuning_table(runs: RecordedRuns) -> Table | None:
    """One row a variant with the point that was chosen; ``None`` where nothing was tuned."""
    if not runs.tuning:
        return None
    rows = []
    for name, choice in runs.tuning["chosen"].items():
        points = "; ".join(f"{point}: {number(mean)}" for point, mean in choice["accuracies"].items())
        rows.append((name, choice["point"], number(choice["accuracies"][choice["point"]]), points))
    caption = "Mean accuracy on the tuning's own seeds and rows; that of the best is biased upwards."
    return table_of("Tuning", ("variant", "chosen", "accuracy while tuning", "all points"), rows, caption)


def tuning_sentence(runs: RecordedRuns) -> str:
    """A sentence on whether the variants were tuned; empty for a single run or a lone variant."""
    compared = [variant for variant in runs.by_variant if runs.baseline_of(variant) is not None]
    if not compared:
        return ""
    if runs.tuning:
        points = len(next(iter(runs.tuning["chosen"].values()))["accuracies"])
        tuned, seeds = ", ".join(runs.tuning["grid"]), runs.tuning["seeds"]
        return (
            f"Tuned: every variant uses its own best of {points} points of {tuned}, chosen by "
            f"{points * len(seeds)} runs each and confirmed on fresh seeds and rows."
        )
    rates = {
        variant: (next(iter(by_seed.values())).raw_config.get("trl") or {}).get("learning_rate")
        for variant, by_seed in runs.by_variant.items()
    }
    if any(rates[variant] != rates.get(runs.baseline[variant], rates[variant]) for variant in compared):
        return "Not tuned: variants differ in learning rate."
    return "Compared at a single learning rate."


def cell_table(runs: RecordedRuns, dataset: str) -> Table:
    """Accuracy and cost of every finished run."""
    rows: list[Cells] = []
    for run in runs.all:
        costs = [count(spent) for spent in (run.tokens, run.device_seconds)]
        rows.append([f"{run.variant}-s{run.seed}", _accuracy(run, dataset), *costs])
    headings = ("cell", Heading("accuracy", "held-out, last"), "tokens", "device seconds")
    caption = "A cell is one variant with one seed. Device seconds: wall time × processes, evaluations included."
    return table_of("Cells", headings, rows, caption)


def _accuracy(run: RecordedRun, dataset: str) -> str:
    if not dataset or not is_scored(run, dataset):
        return NOTHING
    return number(float(mean_accuracies(final_accuracies([run], dataset))[0]))


def audit_table(audits: Mapping[str, Audit]) -> Table | None:
    """One row for each variant; ``None`` where no completions were kept."""
    headings = (
        "run" if len(audits) == 1 else "variant",
        "completions",
        Heading("unscored", "no verdict"),
        Heading("truncated", "at the length limit"),
    )
    rows = []
    for name, audit in audits.items():
        shares = [number(share) for share in (audit.frac_unscored, audit.frac_truncated)]
        rows.append([name, str(audit.completions), *shares])
    caption = "Shares of the completions of the last evaluations."
    return table_of("How answers were scored", headings, rows, caption) if rows else None


def differences_table(audits: Mapping[str, Audit]) -> Table | None:
    """One row a completion on which two verifiers differ; ``None`` where no two verifiers read answers."""
    rows: list[Cells] = []
    counts = []
    for variant, audit in audits.items():
        for pair, records in audit.differences.items():
            counts.append(f"{variant}: {' and '.join(pair)} on {len(records)} of {audit.completions} completions")
            for record in records[:MOST_DIFFERENCES]:
                reference = TableCell(str(record.get("reference"))[:200], is_code=True)
                rows.append([variant, str(record["item"]), reference, *(_said(record, name) for name in pair)])
    verdicts = [Heading(which, "answer and reason", is_prose=True) for which in ("one", "other")]
    name = "run" if len(audits) == 1 else "variant"
    headings: list[str | Heading] = [name, "item", Heading("reference", is_prose=True), *verdicts]
    caption = f"Differences: {'; '.join(counts)}. At most {MOST_DIFFERENCES} of each are listed."
    return table_of("Where verifiers differ", headings, rows, caption) if counts else None


def _said(record: Mapping[str, Any], name: str) -> TableCell:
    reason = str(record[f"{name}/reason"])[:200]
    return TableCell(f"{name}: {verdict_of(record, name)}", f"{record.get(f'{name}/answer')}; {reason}")
