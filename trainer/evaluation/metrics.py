"""Metrics of k completions for each of n items: avg@k, pass@k, maj@k.

``correct`` is (n, k): 1 right, 0 wrong, NaN unscored. Each metric gives one value in [0, 1] per item, NaN if the item
has too few scored completions; `trainer.evaluation.shares.share_estimate` makes a mean with its interval.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def average_correct(correct: Values) -> Values:
    """avg@k: each item's share of right completions among the scored ones, (n, k) → (n,)."""
    scored = (~np.isnan(correct)).sum(1)
    shares = np.full(len(correct), np.nan)
    np.divide(np.nansum(correct, axis=1), scored, out=shares, where=scored > 0)
    return shares


def pass_at_k(correct: Values, k: int) -> Values:
    """pass@k: probability that one of k completions is right, (n, samples) → (n,).

    With c right of m scored, ``1 − C(m − c, k) / C(m, k)``: the mean over all ways to choose k of the m, which is
    unbiased for ``1 − (1 − p)^k`` (arXiv 2107.03374, Eq. 1). NaN if m < k.
    """
    scored = (~np.isnan(correct)).sum(1)
    right = np.nansum(correct, axis=1).astype(int)
    return np.array(
        [
            1.0 - math.comb(m - c, k) / math.comb(m, k) if m >= k else math.nan
            for m, c in zip(scored.tolist(), right.tolist(), strict=True)
        ]
    )


def majority_correct(answers: Sequence[Sequence[str | None]], correct: Values) -> Values:
    """maj@k: 1 if the most frequent answer is right, else 0, (n, k) answers and verdicts → (n,).

    Answers are compared as text. Completions without an answer have no vote; with no vote at all the item is wrong. A
    tie counts the share of right answers among the tied ones. NaN if no completion of the item is scored, and for all
    items if some completions are right but none has an answer: the verifier then reads no answers.
    """
    if (correct == 1).any() and not any(text is not None for texts in answers for text in texts):
        return np.full(len(correct), np.nan)
    return np.array([_majority(texts, row) for texts, row in zip(answers, correct, strict=True)])


def _majority(texts: Sequence[str | None], correct: Values) -> float:
    if np.isnan(correct).all():
        return math.nan
    votes = [
        (text.strip(), right)
        for text, right in zip(texts, correct.tolist(), strict=True)
        if text is not None and not math.isnan(right)
    ]
    counts = Counter(text for text, _ in votes)
    if not counts:
        return 0.0
    leaders = {text for text, count in counts.items() if count == max(counts.values())}
    # leaders have equally many votes
    return float(np.mean([right for text, right in votes if text in leaders]))
