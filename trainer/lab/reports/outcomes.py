"""The outcomes that variants are compared in: what each is, and how it is read from what runs record.

Sweeps, plans, reports and claims name them from `OUTCOMES`. A function below is one outcome, and its docstring the
definition that reports show; it returns (runs,) or (runs, items), NaN where a run recorded too little. What a single
update does (rose_share, frozen_move, gradient_norm_share) is measured by ``evenkeel gradients … --figures``.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenkeel.trainer.evaluation.metrics import pass_at_k
from evenkeel.trainer.lab.reports.accuracies import final_accuracies
from evenkeel.trainer.lab.reports.held_out import Answers, read_answers
from evenkeel.trainer.lab.reports.run_files import RecordedRun
from evenkeel.trainer.lab.statistics.intervals import Floats, StatisticsError

Runs = Sequence[RecordedRun]
Measure = Callable[[Runs, str], Floats]
Curve = tuple[Sequence[float], Sequence[float]]
"""Of a run's evaluations: tokens so far and accuracies, (P,) each."""
Clusters = Mapping[int, tuple[tuple[int, ...], tuple[int, ...]]]
"""Item → sizes of the clusters of equal right answers, before training and at the last evaluation."""
KL, KL_DEAD = "kl", "groups/kl_dead"
RESIDUAL = "cancellation/shared_prefix"
NONE = [math.nan]


@dataclass(frozen=True)
class Outcome:
    """A number by which variants are compared: `paired_difference` over seeds, and over items where it has them.

    Attributes:
        sign: 1 where more is better, −1 where less is.
        measure: runs and a held-out set → values.
        samples, evaluations: completions of a held-out row, and evaluations, that it takes at least.
        start: whether it takes an evaluation before training.
        metric: of the log, that it takes; empty where it takes none.
        reason: why a run that logged all of this may have no value.
    """

    name: str
    definition: str
    unit: str
    sign: int
    measure: Measure
    by_item: bool = False
    samples: int = 1
    evaluations: int = 1
    start: bool = False
    metric: str = ""
    reason: str = "No row has enough verdicts in all runs."

    @property
    def needs(self) -> str:
        """What a run must log."""
        number = "1 before training and 1 later" if self.start else self.evaluations
        samples = f" of {self.samples} samples a row" if self.samples > 1 else ""
        metric = f"; the metric {self.metric}" if self.metric else ""
        return f"evaluations: {number}{samples}{metric}"

    def values(self, runs: Runs, dataset: str) -> Floats:
        """`measure`, of runs that all have a value.

        Raises:
            StatisticsError: some have none.
        """
        found = self.measure(runs, dataset)
        rows = zip(runs, [*found], strict=True)
        if absent := [run for run, row in rows if np.isnan(row).all()]:
            unlogged = [run for run in absent if not self._is_logged(run, dataset)]
            cells = ", ".join(f"{run.variant}-s{run.seed}" for run in unlogged or absent)
            reason = f"It takes {self.needs}." if unlogged else self.reason
            raise StatisticsError(f"{cells}: no {self.name} can be computed. {reason}")
        return found

    def _is_logged(self, run: RecordedRun, dataset: str) -> bool:
        curve, samples = run.held_out()[dataset], _samples(run.final_answers(dataset))
        evaluated = len(curve) >= self.evaluations + self.start and (0.0 in curve or not self.start)
        return evaluated and samples >= self.samples and (not self.metric or bool(run.series(self.metric)))


OUTCOMES: dict[str, Outcome] = {}
"""All outcomes by name, in the order in which they are listed."""


def outcome(unit: str, sign: int, **fields: Any) -> Callable[[Measure], Measure]:
    """Decorator that adds a function to `OUTCOMES`; the arguments are fields of `Outcome`."""

    def listed(measure: Measure) -> Measure:
        name = measure.__name__
        definition = " ".join((measure.__doc__ or "").split())
        OUTCOMES[name] = Outcome(name, definition, unit, sign, measure, **fields)
        return measure

    return listed


@outcome("share", 1, by_item=True)
def accuracy(runs: Runs, dataset: str) -> Floats:
    """Share of right answers at the last evaluation."""
    return final_accuracies(runs, dataset)


@outcome("share", 1, by_item=True, samples=2)
def coverage(runs: Runs, dataset: str) -> Floats:
    """pass@k − avg@k at the last evaluation, on rows with k scored samples; k: of most rows, the fewest of a run."""
    last = [run.final_answers(dataset) for run in runs]
    k = min(map(_samples, last))
    if k < 2:
        return np.full(len(runs), np.nan)
    answers = [found.verdicts_by_item for found in last if found]
    items = sorted(set.intersection(*map(set, answers)))
    solved = [[pass_at_k(np.array([each[item]]), k)[0] for item in items] for each in answers]
    return np.array(solved) - final_accuracies(runs, dataset)


def _samples(answers: Answers | None) -> int:
    """The most common number of samples of a row, the larger of equals: a lost completion does not lower it."""
    often = Counter(map(len, answers.verdicts_by_item.values() if answers else ()))
    return max(often, key=lambda count: (often[count], count), default=1)


@outcome("nats a token", 1, metric="entropy")
def entropy(runs: Runs, dataset: str) -> Floats:
    """Mean of `entropy`, that of the trained tokens, over the last tenth of the rollout batches."""
    return np.array([_end(run, "entropy") for run in runs])


@outcome("nats a token in 100 batches", 1, metric="entropy", reason="It logged it once.")
def entropy_slope(runs: Runs, dataset: str) -> Floats:
    """Least-squares slope of `entropy` over the rollout batches of the run, times 100."""
    found = []
    for run in runs:
        log = run.series("entropy")
        line = np.polyfit([*log], [*log.values()], 1) if len(log) > 1 else NONE
        found.append(100 * line[0])
    return np.array(found)


def _end(run: RecordedRun, metric: str) -> float:
    """Mean over the last tenth of the rollout batches."""
    series = run.series(metric)
    first = 0.9 * max(series, default=0.0)
    return mean([value for point, value in series.items() if point >= first] or NONE)


@outcome("log (nats a token for each point)", -1, start=True, metric=KL, reason="It gained nothing, or KL is 0.")
def tax(runs: Runs, dataset: str) -> Floats:
    """Log of `kl`, from the initial policy on the trained tokens (those of held-out rows are not scored again), mean
    over the last tenth of the rollout batches, over the points of accuracy gained since before training; none where
    nothing was gained.
    """
    found = []
    for run in runs:
        curve = run.held_out()[dataset]
        gain = curve[max(curve)] - curve.get(0.0, math.nan)
        found.append(_log(_end(run, KL)) - _log(100 * gain))
    return np.array(found)


@outcome("nats a token", -1, metric=KL_DEAD)
def kl_dead_groups(runs: Runs, dataset: str) -> Floats:
    """Mean of `groups/kl_dead`, from the initial policy on the tokens of groups whose rewards were all equal, over the
    last tenth of the rollout batches up to the last that had some: rewards told nothing apart there.
    """
    return np.array([_end(run, KL_DEAD) for run in runs])


def _log(value: float) -> float:
    return math.log(value) if value > 0 else math.nan


@outcome("nats", 1, by_item=True, samples=2, start=True, reason="No row has two right answers throughout.")
def drift_between_right_answers(runs: Runs, dataset: str) -> Floats:
    """Entropy of the clusters of a row's equal right answers at the last evaluation − before training, of equally many
    answers everywhere (rarefied): the fewest of the row before or after in a compared run; rows with two or more.
    """
    return entropy_changes([right_clusters(run, dataset) for run in runs])


def right_clusters(run: RecordedRun, dataset: str) -> Clusters:
    """Those of a run, of rows with two right answers or more at both."""
    before = _right_answers(run.answers.get(dataset, {}).get(0))
    after = _right_answers(run.final_file(dataset))
    return {item: (before[item], after[item]) for item in before.keys() & after.keys()}


def _right_answers(file: Path | None) -> dict[int, tuple[int, ...]]:
    """Item → sizes of the clusters of its right answers, two or more: the last ``<answer>``, or what was read."""
    answers = read_answers(file) if file else None
    found: dict[int, list[str]] = {}
    for record in answers.counted if answers else ():
        completion = record.get("completion") or ""
        written = re.findall(r"<answer>(.*?)</answer>", completion, re.DOTALL)
        text = written[-1] if written else record.get("answer")
        if record.get("correct") and text is not None:
            found.setdefault(record["item"], []).append(" ".join(text.split()))
    return {item: tuple(Counter(texts).values()) for item, texts in found.items() if len(texts) > 1}


def entropy_changes(runs: Sequence[Clusters]) -> Floats:
    """`rarefied_entropy` after − before, (runs, items), of items that all have, of as many answers in all runs."""
    changes = []
    for item in sorted(set.intersection(*map(set, runs))):
        pairs = [run[item] for run in runs]
        size = min(sum(clusters) for pair in pairs for clusters in pair)
        changes.append([rarefied_entropy(after, size) - rarefied_entropy(before, size) for before, after in pairs])
    return np.array(changes).reshape(-1, len(runs)).T


@cache
def rarefied_entropy(clusters: tuple[int, ...], size: int) -> float:
    """Expected entropy, in nats, of ``size`` answers, drawn without replacement: more of them add nothing.

    ``−Σ_K Σ_j h(j) · j/n · log(j/n)``, K answers in each of the ``clusters`` of equal ones, h hypergeometric: n drawn,
    K of all N. Source: rarefaction, Hurlbert 1971, Ecology 52.
    """
    from scipy import stats  # not for the names of outcomes

    drawn = np.arange(1, size + 1)
    terms = -drawn / size * np.log(drawn / size)
    chances = [stats.hypergeom.pmf(drawn, sum(clusters), each, size) for each in clusters]
    return float(sum(each @ terms for each in chances))


@outcome("share", -1, evaluations=3)
def jitter(runs: Runs, dataset: str) -> Floats:
    """Mean of abs(m_{k+1} − 2 m_k + m_{k−1}) of the accuracies m at a run's evaluations."""
    curves = [[*run.held_out()[dataset].values()] for run in runs]
    return np.array([mean(np.abs(np.diff(each, 2)).tolist() or NONE) for each in curves])


@outcome("log (tokens)", -1, evaluations=2, metric="num_tokens", reason="It began at the threshold.")
def tokens_to_threshold(runs: Runs, dataset: str) -> Floats:
    """Log of the tokens until accuracy, lower at first, reaches the highest one that all compared runs reach later."""
    return tokens_reached([tokens_curve(run, dataset) for run in runs])


def tokens_curve(run: RecordedRun, dataset: str) -> Curve:
    """The curve of a run; empty where it logged no tokens."""
    curve = run.held_out()[dataset]
    tokens = {0.0: 0.0, **run.series("num_tokens")}
    if len(tokens) < 2:
        return [], []
    so_far = np.interp([*curve], [*tokens], [*tokens.values()])
    return so_far.tolist(), [*curve.values()]


def tokens_reached(curves: Sequence[Curve]) -> Floats:
    """Log of the tokens until each curve, straight between points, first reaches what all do after their first one.

    NaN for a curve that begins there, and for all where one has a single point.
    """
    if any(len(accuracies) < 2 for _, accuracies in curves):
        return np.full(len(curves), np.nan)
    threshold = min(max(accuracies[1:]) for _, accuracies in curves)
    found = []
    for tokens, accuracies in curves:
        end = int(np.greater_equal(accuracies, threshold).argmax())
        part = slice(end - 1, end + 1)
        found.append(_log(float(np.interp(threshold, accuracies[part], tokens[part]))) if end else math.nan)
    return np.array(found)


@outcome("share", -1, metric=RESIDUAL)
def residual(runs: Runs, dataset: str) -> Floats:
    """Mean of `cancellation/shared_prefix` over the run."""
    return np.array([mean([*run.series(RESIDUAL).values()] or NONE) for run in runs])


ACCURACY = OUTCOMES["accuracy"]
OutcomeName = str
if not TYPE_CHECKING:  # mypy knows no such Literal
    OutcomeName = Literal[*OUTCOMES]
