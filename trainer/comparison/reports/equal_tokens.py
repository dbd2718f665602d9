"""Accuracies at equally many tokens: who trains on fewer rollouts, or generates more for each, is seen as such."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trainer.comparison.reports.run_files import RecordedRun

_ALIKE = 1.02
"""Runs whose tokens differ by less than this factor are compared at equal tokens as they are."""


def common_tokens(by_variant: Mapping[str, Sequence[RecordedRun]]) -> float | None:
    """The tokens (prompts and completions, all that was generated) up to which every run was evaluated.

    What a run generated after its last evaluation does not count: its accuracy there, nobody measured.

    ``None`` where the tokens of an evaluation were not logged, all were evaluated up to as many, or a run had spent
    more before its first evaluation on one of its held-out sets.
    """
    every = [run for runs in by_variant.values() for run in runs]
    spent = [_spent(run, dataset) for run in every for dataset in run.held_out()]
    if not spent or not all(spent):
        return None
    first, last = [tokens[0] for tokens in spent], [tokens[-1] for tokens in spent]
    return None if max(last) <= _ALIKE * min(last) or max(first) > min(last) else min(last)


def accuracies_at(tokens: float, runs: Sequence[RecordedRun], dataset: str) -> NDArray[np.float64]:
    """Each run's held-out accuracy when so many tokens were generated, (runs,): linear between its evaluations.

    NaN where the first evaluation came after more tokens, or the last one after fewer, or the tokens of an evaluation
    were not logged.
    """
    found = []
    for run in runs:
        values = [accuracy for _, accuracy in sorted(run.held_out()[dataset].items())]
        spent = _spent(run, dataset)
        found.append(float(np.interp(tokens, spent, values, left=np.nan, right=np.nan)) if spent else np.nan)
    return np.array(found)


def _spent(run: RecordedRun, dataset: str) -> list[float]:
    """The tokens at each evaluation, in their order; none where one of them is not known."""
    logged = [run.tokens_at(point) for point in sorted(run.held_out()[dataset])]
    known = [count for count in logged if count is not None]
    return known if len(known) == len(logged) else []
