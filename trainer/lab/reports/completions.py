"""Completions to read: right, wrong and unscored ones, of the variants side by side on the same item."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evenkeel.trainer.evaluation.differences import VERDICT_OF
from evenkeel.trainer.lab.reports.held_out import Answers
from evenkeel.trainer.lab.reports.run_files import RecordedRuns

MOST_CHARACTERS = 4_000
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Sample:
    """One completion with its verdict: right, wrong or unscored; ``cut`` characters at its end are not shown."""

    label: str
    verdict: str
    completion: str
    cut: int
    answer: str | None
    reasons: list[str]
    num_tokens: int | None


@dataclass(frozen=True)
class SampleGroup:
    """Completions shown side by side, and what they have in common."""

    title: str
    prompt: str | None
    reference: str | None
    samples: list[Sample]


def sample_groups(runs: RecordedRuns, dataset: str) -> list[SampleGroup]:
    """For a sweep, items answered by all variants with their first common seed; for one run, a few of each verdict.

    Empty where a run kept no completions.
    """
    common = set.intersection(*(set(by_seed) for by_seed in runs.by_variant.values()))
    if not common:
        return []
    seed = min(common)
    answers = {name: by_seed[seed].final_answers(dataset) for name, by_seed in runs.by_variant.items()}
    found = {name: each for name, each in answers.items() if each is not None}
    if len(found) < len(answers):
        return []
    return list(_side_by_side(found) if len(found) > 1 else _of_one_run(next(iter(found.values()))))


def _of_one_run(answers: Answers, number: int = 3) -> Iterator[SampleGroup]:
    for correct, verdict in VERDICT_OF.items():
        records = [record for record in answers.counted if record.get("correct") is correct]
        for record in records[:number]:
            title = f"{verdict.capitalize()} ({len(records)} of {len(answers.counted)}), item {record['item']}"
            yield SampleGroup(title, record.get("prompt"), record.get("reference"), [_sample("", record)])


def _side_by_side(answers: Mapping[str, Answers]) -> Iterator[SampleGroup]:
    by_item = {name: each.first_by_item() for name, each in answers.items()}
    items = sorted(set.intersection(*map(set, by_item.values())))
    verdicts = {item: {VERDICT_OF[each[item].get("correct")] for each in by_item.values()} for item in items}
    kinds: list[tuple[str, int, Callable[[set[str]], bool]]] = [
        ("the variants disagree", 2, lambda said: {"right", "wrong"} <= said),
        ("unscored", 2, lambda said: "unscored" in said),
        ("right in all variants", 1, lambda said: said == {"right"}),
        ("wrong in all variants", 1, lambda said: said == {"wrong"}),
    ]
    for title, number, is_kind in kinds:
        of_kind = [item for item in items if is_kind(verdicts[item])]
        for item in of_kind[:number]:
            first = next(iter(by_item.values()))[item]
            yield SampleGroup(
                f"Item {item}: {title} ({len(of_kind)} of {len(items)} items)",
                first.get("prompt"),
                first.get("reference"),
                [_sample(name, each[item]) for name, each in by_item.items()],
            )


def _sample(label: str, record: Record) -> Sample:
    text = str(record.get("completion") or "")
    reasons = [
        f"{key.removesuffix('/reason')}: {reason}"
        for key, reason in record.items()
        if key.endswith("/reason") and reason
    ]
    return Sample(
        label,
        VERDICT_OF[record.get("correct")],
        text[:MOST_CHARACTERS],
        max(0, len(text) - MOST_CHARACTERS),
        record.get("answer"),
        reasons,
        record.get("num_tokens"),
    )
