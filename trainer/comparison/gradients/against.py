"""Whether what a bench measures before training ranks strategies as a finished sweep did."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rewards.registry import PartError
from trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, TOKEN_WEIGHT, UPDATE_SCHEDULE
from trainer.algorithms.strategies import build_strategies
from trainer.comparison.gradients.bench import Bench
from trainer.comparison.gradients.replay import ReplayError
from trainer.comparison.gradients.strategies import Named
from trainer.comparison.reports.accuracies import areas_under_curves, final_accuracies, mean_accuracies
from trainer.comparison.reports.comparison import datasets_of
from trainer.comparison.reports.run_files import RecordedRun, RecordedRuns, read_runs
from trainer.statistics import RankCorrelation, rank_correlation
from trainer.statistics.ranks import FEWEST

MEASURES = ("signal_to_noise", "alignment", "gain")
"""What of a strategy might say how well it trains; the first is the one that is asked about."""
OUTCOMES = ("final accuracy", "area under the curve")
_KINDS = (ADVANTAGE, TOKEN_WEIGHT, COEFFICIENT, UPDATE_SCHEDULE)


@dataclass(frozen=True)
class SweepOutcome:
    """What a finished sweep says of its variants.

    Attributes:
        strategies: a bench's strategy for each variant, under the variant's name.
        outcomes: of `OUTCOMES` → variant → mean over ``seeds``, those that all these variants have.
        left_out: variant → why no bench can tell it from others.
    """

    name: str
    strategies: list[Named]
    outcomes: dict[str, dict[str, float]]
    seeds: list[int]
    left_out: dict[str, str] = field(default_factory=dict)


def sweep_outcome(directory: Path) -> SweepOutcome:
    """The finished runs of a sweep's directory, on its first held-out set.

    Variants are compared by the strategies and the loss of the first update alone: of those that share both, the first
    one stays (a learning rate, a number of steps or kept groups are nothing that one gradient shows).

    A variant called ``grpo`` is the bench's own baseline, under the configuration's loss.

    Raises:
        ReportError: nothing to read; ReplayError: fewer than four variants to compare, or no seed that all have.
    """
    runs = read_runs(directory)
    strategies: dict[str, Named] = {}
    left_out: dict[str, str] = {}
    known: dict[str, str] = {}
    for variant, by_seed in runs.by_variant.items():
        config = next(iter(by_seed.values())).config
        asked = {kind: (config.get("algorithm") or {}).get(kind) for kind in _KINDS}
        loss = (config.get("trl") or {}).get("loss_type", "dapo")
        told = repr((sorted(asked.items()), None if asked[COEFFICIENT] else loss))
        if told in known:
            left_out[variant] = f"its first update is {known[told]}'s"
            continue
        try:
            parts = build_strategies(**{kind: part for kind, part in asked.items() if part is not None})
        except PartError as error:
            left_out[variant] = str(error)
            continue
        known[told] = variant
        strategies[variant] = Named(variant, parts, loss)
    kept = {variant: runs.by_variant[variant] for variant in strategies}
    seeds = sorted(set.intersection(*map(set, kept.values()))) if kept else []
    if len(kept) < FEWEST or not seeds:
        raise ReplayError(
            f"The sweep in {directory} has {len(kept)} variants that a gradient can tell apart, and {len(seeds)} seeds "
            f"that all of them have finished: ranks want {FEWEST} variants and one seed at least. Run more cells first."
        )
    found = {variant: [by_seed[seed] for seed in seeds] for variant, by_seed in kept.items()}
    return SweepOutcome(runs.name, list(strategies.values()), _outcomes(runs, found), seeds, left_out)


def _outcomes(runs: RecordedRuns, by_variant: Mapping[str, list[RecordedRun]]) -> dict[str, dict[str, float]]:
    datasets = datasets_of(runs)
    if not datasets:
        raise ReplayError(f"No run of the sweep {runs.name} has judged held-out rows to rank its variants by.")
    final, area = {}, {}
    for variant, found in by_variant.items():
        final[variant] = float(mean_accuracies(final_accuracies(found, datasets[0])).mean())
        areas = areas_under_curves(found, datasets[0])
        area[variant] = math.nan if areas is None else float(np.mean(areas))
    return dict(zip(OUTCOMES, (final, area), strict=True))


def agreements(found: Bench, sweep: SweepOutcome) -> dict[str, RankCorrelation]:
    """``<measure>, <outcome>`` → Spearman's ρ over the variants; what has no number in one of them is left out."""
    rows = {row.name: row for row in found.rows}
    correlations = {}
    for measure in MEASURES:
        for outcome in OUTCOMES:
            pairs = [
                (float(f"{getattr(rows[variant], measure):.5g}"), value)  # what rounding alone tells apart is tied
                for variant, value in sweep.outcomes[outcome].items()
                if variant in rows
            ]
            numbers = [pair for pair in pairs if all(map(math.isfinite, pair))]
            if len(numbers) >= FEWEST:
                measured, reached = zip(*numbers, strict=True)
                correlations[f"{measure}, {outcome}"] = rank_correlation(measured, reached)
    return correlations


def agreement_table(correlations: Mapping[str, RankCorrelation], sweep: SweepOutcome) -> str:
    """The table in Markdown, and which variants are not in it."""
    lines = ["| step-0 measure, outcome | Spearman's ρ [95 %] | p | variants |", "|" + " --- |" * 4]
    for name, each in correlations.items():
        interval = f"{each.value:+.2f} [{each.low:+.2f}, {each.high:+.2f}]" if math.isfinite(each.value) else "–"
        lines.append(f"| {name} | {interval} | {each.p_value:.2g} | {each.pairs} |")
    lines += [f"Not in it: {variant}: {reason}" for variant, reason in sweep.left_out.items()]
    return "\n".join([*lines, f"Seeds of {sweep.name}: {', '.join(map(str, sweep.seeds))}"])


def as_json(correlations: Mapping[str, RankCorrelation], sweep: SweepOutcome) -> dict[str, Any]:
    """Plain data for gradients.json."""
    return {
        "sweep": sweep.name,
        "seeds": sweep.seeds,
        "outcomes": sweep.outcomes,
        "left_out": sweep.left_out,
        "correlations": {name: vars(each) for name, each in correlations.items()},
    }
