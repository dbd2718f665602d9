"""How strategies change the gradient: the same rollouts and weights for all, one row of numbers for each."""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from pydantic_core import from_json, to_json
from torch import Tensor

from evenkeel.errors import Refusal
from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.diagnostics import gradient_shares, shared_prefix_lengths, shared_prefix_residual
from evenkeel.trainer.lab.gradients.contributions import ReplayedBatch, passes, true_gradient
from evenkeel.trainer.lab.gradients.jackknife import block_of, margins
from evenkeel.trainer.lab.gradients.moments import GradientSums, Moments
from evenkeel.trainer.lab.gradients.replay import Recipe, Row, group_gradients, replayed
from evenkeel.trainer.lab.gradients.sketch import CountSketch
from evenkeel.trainer.lab.gradients.strategies import BASELINE, Named, named_strategy

COEFFICIENT_LOSS = "cispo"
"""The loss in which a coefficient replaces the clipped ratio."""


@dataclass(frozen=True)
class Measured:
    """One strategy, or one pass of it, on all batches.

    Attributes:
        name: of the strategy; a pass is called ``lopti, pass 1``.
        cosine: with the baseline's gradient on the same prompts.
        norm: of the gradient, in units of the baseline's.
        signal_to_noise: of one prompt's gradient, see `Moments`.
        alignment: cosine of the expected gradient with that of p(correct), without noise; 1 = no bias in direction.
        signal_to_noise_margin, alignment_margin: half of their 95 % intervals, see `margins`; NaN of few batches.
        gain: change of p(correct) to first order per unit of length moved along the update.
        quartiles: shares of the update by π_old, four equal ranges from 0 to 1.
        shared: share of the update on tokens with which all responses of a group begin.
        residual: share of their contributions that does not cancel when a batch is one optimizer step.
        seconds: of a batch, for advantages and weights.
        passes: optimizer steps a batch; ``scores``: whether π_old or entropies are needed.
    """

    name: str
    cosine: float
    norm: float
    signal_to_noise: float
    alignment: float
    gain: float
    quartiles: list[float]
    shared: float
    residual: float
    seconds: float
    passes: int
    scores: bool
    signal_to_noise_margin: float = math.nan
    alignment_margin: float = math.nan


@dataclass(frozen=True)
class Bench:
    """All of a bench's numbers.

    Attributes:
        cosines: (rows, rows) between the gradients of all rows.
        absent: strategies that could not be replayed, and why.
        sketch_error: standard error of a cosine by the random projection, at most; 0 = true gradients.
        off_policy: mean of log π − log π_old over the tokens whose π_old was recorded; NaN where none was.
    """

    rows: list[Measured]
    cosines: list[list[float]]
    batches: int
    groups: int
    rollouts: int
    parameters: int
    seconds: float
    sketch_error: float
    off_policy: float
    absent: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain data; NaN and infinities, which JSON does not have, are ``None``."""
        found: dict[str, Any] = from_json(to_json(asdict(self), inf_nan_mode="null"))
        return found


@dataclass
class _Tally:
    """Sums over batches of what is measured of one row without a gradient."""

    quartiles: Tensor = field(default_factory=lambda: torch.zeros(4))
    shared: float = 0.0
    size: float = 0.0
    residuals: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, contributions: Tensor, batch: ReplayedBatch, seconds: float) -> None:
        """One batch."""
        probs, mask = batch.logps.exp(), batch.mask
        shares = gradient_shares(probs, contributions, mask)
        prefixes = shared_prefix_lengths(batch.completion_ids, mask, batch.group_size)
        in_prefix = torch.arange(mask.shape[1]) < prefixes[:, None]
        self.quartiles += shares
        self.size += float(shares.sum())
        self.shared += float(gradient_shares(probs, contributions, mask * in_prefix).sum())
        ones = torch.ones(len(mask))
        residual = shared_prefix_residual(contributions, ones, batch.completion_ids, mask, batch.group_size)
        self.residuals += [] if residual.isnan() else [float(residual)]
        self.seconds += seconds


def bench(
    batches: Iterable[Sequence[Row]],
    model: Any,
    recipe: Recipe,
    strategies: Sequence[Named],
    loss_type: str,
    longest: int,
    dimensions: int | None = None,
) -> Bench:
    """Replay recorded batches through the strategies; the first is `BASELINE`, which is added where it is absent.

    Args:
        batches: rows of each recorded batch, by their place in it.
        model: the policy; it is put into evaluation mode.
        dimensions: of the random projection; ``None`` = true gradients.

    Raises:
        Refusal: nothing to replay, or fewer than two groups.
    """
    started = time.perf_counter()
    model.eval()
    asked = [named_strategy(BASELINE), *(named for named in strategies if named.name != BASELINE)]
    sketch = CountSketch(dimensions, [p.numel() for p in model.parameters() if p.requires_grad])
    tallies: dict[str, _Tally] = {}
    absent: dict[str, str] = {}
    whole: GradientSums | None = None
    blocks, drifts, rollouts = [], [], 0
    for rows in batches:
        batch = replayed(rows, recipe, model)
        made = _contributions(asked, batch, loss_type, longest, tallies, absent)
        stacked = torch.stack([*made, true_gradient(batch)])
        sums = GradientSums(len(stacked), sketch.length)
        for coefficients, jacobian in group_gradients(batch, stacked, model, recipe, sketch):
            sums.add(coefficients, jacobian)
        blocks.append(block_of(sums))
        drifts += _drift(rows, batch)
        rollouts += len(rows)
        if whole is None:
            whole = sums
        else:
            whole.absorb(sums)
    if whole is None or whole.groups < 2:
        raise Refusal(
            "There are fewer than two groups to replay, and the noise between prompts needs two. Record more."
        )
    moments = whole.moments()
    return Bench(
        rows=_measured([named for named in asked if named.name not in absent], moments, blocks, tallies),
        cosines=moments.cosines[:-1, :-1].tolist(),
        batches=len(blocks),
        groups=whole.groups,
        rollouts=rollouts,
        parameters=sum(sketch.sizes),
        seconds=time.perf_counter() - started,
        sketch_error=sketch.error,
        off_policy=math.fsum(drifts) / len(drifts) if drifts else math.nan,
        absent=absent,
    )


def _labels(named: Named) -> list[str]:
    """The rows of a strategy: itself, and each of its passes where it has several."""
    count = named.parts.schedule.num_passes
    return [named.name, *(f"{named.name}, pass {n + 1}" for n in range(count) if count > 1)]


def _contributions(
    asked: Sequence[Named],
    batch: ReplayedBatch,
    loss_type: str,
    longest: int,
    tallies: dict[str, _Tally],
    absent: dict[str, str],
) -> list[Tensor]:
    """Contributions (N, T) of every row; what cannot be replayed goes to ``absent``, in the first batch."""
    made: list[Tensor] = []
    for named in asked:
        if named.name in absent:
            continue
        loss = (named.loss or loss_type) if named.parts.coefficient is None else COEFFICIENT_LOSS
        started = time.perf_counter()
        try:
            found = passes(named.parts, batch, loss, longest)
        except PartError as error:
            if named.name in tallies:
                raise
            absent[named.name] = str(error)
            continue
        seconds = time.perf_counter() - started
        rows = [torch.stack(found).sum(0), *(found if len(found) > 1 else [])]
        for label, contributions in zip(_labels(named), rows, strict=True):
            tallies.setdefault(label, _Tally()).add(contributions, batch, seconds)
        made += rows
    return made


def _measured(
    strategies: Sequence[Named], moments: Moments, blocks: Sequence[GradientSums], tallies: dict[str, _Tally]
) -> list[Measured]:
    """The rows of all strategies, in the order of the estimators of ``moments``, of which p(correct) is the last."""
    truth = len(moments.totals) - 1
    alignment, gain = moments.alignment(truth), moments.gain(truth)
    ratio_margins = margins(blocks, lambda each: each.signal_to_noise)
    alignment_margins = margins(blocks, lambda each: each.alignment(truth))
    signals = ("old_logps", "probs", "entropies", "sum_pi_squared")
    rows = []
    labelled = [(named, label) for named in strategies for label in _labels(named)]
    for place, (named, label) in enumerate(labelled):
        tally, count = tallies[label], named.parts.schedule.num_passes
        size = tally.size or math.nan
        rows.append(
            Measured(
                name=label,
                cosine=float(moments.cosines[0, place]),
                norm=float(moments.norms[place] / moments.norms[0]),
                signal_to_noise=float(moments.signal_to_noise[place]),
                alignment=float(alignment[place]),
                gain=float(gain[place]),
                quartiles=(tally.quartiles / size).tolist(),
                shared=tally.shared / size,
                residual=sum(tally.residuals) / len(tally.residuals) if tally.residuals else math.nan,
                seconds=tally.seconds / len(blocks),
                passes=count if label == named.name else 1,
                scores=count > 1 or any(named.parts.ask_for(signal) for signal in signals),
                signal_to_noise_margin=float(ratio_margins[place]),
                alignment_margin=float(alignment_margins[place]),
            )
        )
    return rows


def _drift(rows: Sequence[Row], batch: ReplayedBatch) -> list[float]:
    """log π − log π_old, the mean of each completion whose π_old was recorded."""
    found = []
    for row, logps in zip(rows, batch.logps, strict=True):
        if row["old_logps"]:
            found.append(
                float(logps[: len(row["old_logps"])].mean()) - math.fsum(row["old_logps"]) / len(row["old_logps"])
            )
    return found
