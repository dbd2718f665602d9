"""Audit of the verdicts: shares unscored, shares truncated, and where verifiers differ."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenkeel.trainer.evaluation.differences import differences, reward_names
from evenkeel.trainer.lab.reports.run_files import RecordedRuns

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Audit:
    """One variant, over the last evaluations of its seeds; shares are ``None`` where nothing was recorded.

    Attributes:
        differences: two verifiers → the completions on which they differ.
        reasons: why completions were wrong or unscored, numbers as #, with their counts, most frequent first.
    """

    completions: int
    frac_unscored: float
    frac_truncated: float
    differences: dict[tuple[str, str], list[Record]]
    reasons: list[tuple[str, int]]


def verifier_audits(runs: RecordedRuns, dataset: str) -> dict[str, Audit]:
    """Variant → audit, for the variants whose runs kept their completions."""
    audits = {}
    for name, by_seed in runs.by_variant.items():
        answers = [run.final_answers(dataset) for run in by_seed.values()]
        if records := [record for each in answers if each is not None for record in each.counted]:
            audits[name] = _audit(records)
    return audits


def _audit(records: Sequence[Record]) -> Audit:
    scored = [record for record in records if record.get("correct") is not None]
    failed = [record for record in records if record.get("correct") is not True]
    names = reward_names(records)
    reasons = Counter(_reason(record, names) for record in failed)
    reasons.pop("", None)
    return Audit(
        len(records),
        frac_unscored=1 - len(scored) / len(records),
        frac_truncated=float(np.mean([bool(record.get("truncated")) for record in records])),
        differences=differences(records),
        reasons=reasons.most_common(6),
    )


def _reason(record: Record, names: Sequence[str]) -> str:
    """The first reward's reason, with # for its numbers: "equals 18, not 27" and "equals 7, not 9" are one reason."""
    found = next((str(text) for name in names if (text := record.get(f"{name}/reason"))), "")
    return re.sub(r"\d+", "#", " ".join(found.split())[:160])
