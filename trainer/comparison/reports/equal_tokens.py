"""Accuracies at equally many tokens: who trains on fewer rollouts, or generates more for each, is seen as such."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trainer.comparison.reports.run_files import RecordedRun

_ALIKE = 1.02
"""Runs whose tokens differ by less than this factor are compared at equal tokens as they are."""


def common_tokens(by_variant: Mapping[str, Sequence[RecordedRun]]) -> float | None:
    """The tokens (prompts and completions, all that was generated) that every run has reached: the least total.

    ``None`` where a run did not log them, or all used as many.
    """
    totals = [run.tokens for runs in by_variant.values() for run in runs]
    known = [total for total in totals if total]
    if not known or len(known) < len(totals) or max(known) <= _ALIKE * min(known):
        return None
    return min(known)


def accuracies_at(tokens: float, runs: Sequence[RecordedRun], dataset: str) -> NDArray[np.float64]:
    """Each run's held-out accuracy when so many tokens were generated, (runs,): linear between its evaluations."""
    found = []
    for run in runs:
        series = sorted(run.held_out()[dataset].items())
        spent = [run.tokens_at(point) or 0.0 for point, _ in series]
        found.append(float(np.interp(tokens, spent, [accuracy for _, accuracy in series])))
    return np.array(found)
