"""Accuracies at equally many tokens: who trains on fewer rollouts, or generates more for each, is seen as such."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trainer.comparison.reports.run_files import RecordedRun

_ALIKE = 1.02
"""Runs whose tokens differ by less than this factor are compared at equal tokens as they are."""


def common_tokens(by_variant: Mapping[str, Sequence[RecordedRun]]) -> float | None:
    """The tokens (prompts and completions, all that was generated) that every run has reached: the least total.

    ``None`` where a run did not log them, all used as many, or a run had spent more before its first evaluation on one
    of its held-out sets: what its accuracy was at so many tokens, nobody measured.
    """
    totals = [run.tokens for runs in by_variant.values() for run in runs]
    known = [total for total in totals if total]
    if not known or len(known) < len(totals) or max(known) <= _ALIKE * min(known):
        return None
    every = [run for runs in by_variant.values() for run in runs]
    found = [accuracies_at(min(known), [run], dataset) for run in every for dataset in run.held_out()]
    return min(known) if np.isfinite(found).all() else None


def accuracies_at(tokens: float, runs: Sequence[RecordedRun], dataset: str) -> NDArray[np.float64]:
    """Each run's held-out accuracy when so many tokens were generated, (runs,): linear between its evaluations.

    NaN where the first evaluation came after more tokens, or the tokens of an evaluation were not logged.
    """
    found = []
    for run in runs:
        series = sorted(run.held_out()[dataset].items())
        logged = [run.tokens_at(point) for point, _ in series]
        spent = [count for count in logged if count is not None]
        is_known = spent and len(spent) == len(logged)
        values = [accuracy for _, accuracy in series]
        found.append(float(np.interp(tokens, spent, values, left=np.nan)) if is_known else np.nan)
    return np.array(found)
