"""Whether the verdicts can be trusted: shares unjudged and truncated, rewards that disagree, length."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenkeel.trainer.evaluation.differences import differences, reward_names
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns
from evenkeel.trainer.lab.statistics import Estimate, proportion_estimate

Record = Mapping[str, Any]
LENGTH_BINS = 5


@dataclass(frozen=True)
class Audit:
    """One variant, over the last evaluations of its seeds; shares are ``None`` where nothing was recorded.

    Attributes:
        frac_killed: by reward, the share of completions judged while training whose verifier was stopped at a limit.
        disagreement: pair of rewards → shares of completions that only the first, or only the second, rewards.
        differences: two verifiers → the completions of which they say different things.
        reasons: why completions were wrong or unjudged, numbers as #, with their counts, most frequent first.
    """

    completions: int
    frac_unjudged: float
    frac_truncated: float
    frac_killed: dict[str, float]
    disagreement: dict[str, tuple[float, float]]
    differences: dict[tuple[str, str], list[Record]]
    reasons: list[tuple[str, int]]


def verifier_audits(runs: RecordedRuns, dataset: str) -> dict[str, Audit]:
    """Variant → audit, for the variants whose runs kept their completions."""
    return {
        name: _audit(list(by_seed.values()), records)
        for name, by_seed in runs.by_variant.items()
        if (records := final_records(list(by_seed.values()), dataset))
    }


def final_records(runs: Sequence[RecordedRun], dataset: str) -> list[Record]:
    """The completions of the runs' last evaluations."""
    answers = [run.final_answers(dataset) for run in runs]
    return [record for each in answers if each is not None for record in each.counted]


def accuracy_by_length(records: Sequence[Record]) -> dict[str, Estimate]:
    """Range of tokens → share of right completions among the judged, in fifths of equally many completions."""
    judged = [record for record in records if record.get("correct") is not None and record.get("num_tokens")]
    if not judged:
        return {}
    tokens = np.array([record["num_tokens"] for record in judged])
    right = np.array([record["correct"] for record in judged], float)
    edges = np.unique(np.quantile(tokens, np.linspace(0, 1, LENGTH_BINS + 1)).astype(int))
    bins = np.clip(np.searchsorted(edges, tokens, side="right") - 1, 0, max(0, len(edges) - 2))
    found = {}
    for number in np.unique(bins):
        here = bins == number
        low, high = int(tokens[here].min()), int(tokens[here].max())
        label = str(low) if low == high else f"{low}–{high}"
        found[label] = proportion_estimate(int(right[here].sum()), int(here.sum()))
    return found


def _audit(runs: Sequence[RecordedRun], records: Sequence[Record]) -> Audit:
    judged = [record for record in records if record.get("correct") is not None]
    failed = [record for record in records if record.get("correct") is not True]
    names = reward_names(records)
    reasons = Counter(_reason(record, names) for record in failed)
    reasons.pop("", None)
    return Audit(
        len(records),
        frac_unjudged=1 - len(judged) / len(records),
        frac_truncated=float(np.mean([bool(record.get("truncated")) for record in records])),
        frac_killed={name: share for name in names if (share := _logged_mean(runs, f"verifier/{name}/frac_killed"))},
        disagreement=_disagreement(judged, names),
        differences=differences(records),
        reasons=reasons.most_common(6),
    )


def _reason(record: Record, names: Sequence[str]) -> str:
    """The first reward's reason, with # for its numbers: "equals 18, not 27" and "equals 7, not 9" are one reason."""
    found = next((str(text) for name in names if (text := record.get(f"{name}/reason"))), "")
    return re.sub(r"\d+", "#", " ".join(found.split())[:160])


def _logged_mean(runs: Sequence[RecordedRun], key: str) -> float:
    values = [value for run in runs for value in run.series(key).values()]
    return float(np.mean(values)) if values else 0.0


def _disagreement(judged: Sequence[Record], names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The reward that decides what is right against each of the others, such as one for the format."""
    found = {}
    for other in names[1:]:
        both = [record for record in judged if record.get(f"{other}/score") is not None]
        if both:
            pays = np.array([[bool(record["correct"]), record[f"{other}/score"] > 0] for record in both])
            right, paid = pays.T
            found[f"{names[0]} / {other}"] = (float((right & ~paid).mean()), float((paid & ~right).mean()))
    return found
