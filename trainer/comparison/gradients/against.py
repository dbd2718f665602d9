"""Whether what a bench measures before training ranks strategies as a finished sweep did."""

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rewards.registry import PartError
from trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, TOKEN_WEIGHT, UPDATE_SCHEDULE
from trainer.algorithms.registry import Strategy
from trainer.algorithms.strategies import build_strategies
from trainer.comparison.gradients.bench import Bench
from trainer.comparison.gradients.replay import ReplayError
from trainer.comparison.gradients.strategies import Named
from trainer.comparison.plain_data import plain_data
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
    known: list[tuple[Any, str]] = []
    for variant, by_seed in runs.by_variant.items():
        config = next(iter(by_seed.values())).config
        asked = {kind: (config.get("algorithm") or {}).get(kind) for kind in _KINDS}
        loss = (config.get("trl") or {}).get("loss_type", "dapo")
        try:
            parts = build_strategies(**{kind: part for kind, part in asked.items() if part is not None})
        except PartError as error:
            left_out[variant] = str(error)
            continue
        built = (_as_built(getattr(parts, kind), asked[kind]) for kind in _KINDS)
        update = (*built, None if asked[COEFFICIENT] else loss)
        if same := next((name for before, name in known if before == update), None):
            left_out[variant] = f"its first update is {same}'s"
            continue
        known.append((update, variant))
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


def _as_built(part: Strategy | None, spec: Any) -> Any:
    """What tells a part from others however it was written: its function, and its options with their defaults.

    An object keeps what it was made with to itself: it is told from others as it was written.
    """
    if part is None:
        return None
    if not inspect.isroutine(part.function):
        return repr(spec)
    parameters = inspect.signature(part.function).parameters.values()
    defaults = {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}
    return part.function, {**defaults, **part.options}


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


@dataclass(frozen=True)
class Agreement:
    """How far step-0 measures and what a sweep reached rank its variants alike.

    Attributes:
        correlations: ``<measure>, <outcome>`` → Spearman's ρ over the variants that have both numbers.
        left_out: variant, or ``<measure>, <outcome>`` → why it is in none of the correlations, or in which it is not.
    """

    correlations: dict[str, RankCorrelation]
    left_out: dict[str, str]


def agreement(found: Bench, sweep: SweepOutcome) -> Agreement:
    """The correlations that have `FEWEST` variants or more, and what is left out."""
    rows = {row.name: row for row in found.rows}
    left_out = dict(sweep.left_out)
    ranked: dict[str, dict[str, tuple[float, float]]] = {}
    for measure in MEASURES:
        for outcome in OUTCOMES:
            pairs = _pairs(rows, measure, sweep.outcomes[outcome])
            if len(pairs) < FEWEST:
                left_out[f"{measure}, {outcome}"] = (
                    f"{len(pairs)} variants have a number of it, and ranks want {FEWEST}"
                )
            else:
                ranked[f"{measure}, {outcome}"] = pairs
    for variant in (named.name for named in sweep.strategies):
        missing = [name for name, pairs in ranked.items() if variant not in pairs]
        if variant not in rows:
            left_out[variant] = found.absent.get(variant, "it was not replayed")
        elif missing:
            left_out[variant] = f"no number of {'; '.join(missing)}"
    correlations = {}
    for name, pairs in ranked.items():
        measured, reached = zip(*pairs.values(), strict=True)
        correlations[name] = rank_correlation(measured, reached)
    return Agreement(correlations, left_out)


def _pairs(rows: Mapping[str, Any], measure: str, reached: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Variant → both numbers, of those that have both; what rounding alone tells apart is tied."""
    both = {
        variant: (float(f"{getattr(rows[variant], measure):.5g}"), value)
        for variant, value in reached.items()
        if variant in rows
    }
    return {variant: pair for variant, pair in both.items() if all(map(math.isfinite, pair))}


def agreement_table(found: Agreement, sweep: SweepOutcome) -> str:
    """The table in Markdown, and which variants are not in it, or not in all of it."""
    lines = ["| step-0 measure, outcome | Spearman's ρ [95 %] | p | variants |", "|" + " --- |" * 4]
    for name, each in found.correlations.items():
        interval = f"{each.value:+.2f} [{each.low:+.2f}, {each.high:+.2f}]" if math.isfinite(each.value) else "–"
        lines.append(f"| {name} | {interval} | {each.p_value:.2g} | {each.pairs} |")
    lines += [f"Not in it: {variant}: {reason}" for variant, reason in found.left_out.items()]
    return "\n".join([*lines, f"Seeds of {sweep.name}: {', '.join(map(str, sweep.seeds))}"])


def as_json(found: Agreement, sweep: SweepOutcome) -> dict[str, Any]:
    """Plain data for gradients.json; what is no number is ``None``."""
    return plain_data(
        {
            "sweep": sweep.name,
            "seeds": sweep.seeds,
            "outcomes": sweep.outcomes,
            "left_out": found.left_out,
            "correlations": {name: vars(each) for name, each in found.correlations.items()},
        }
    )
