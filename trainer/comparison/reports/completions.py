"""Completions to read: right, wrong and unjudged ones, of the variants side by side on the same item."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenkeel.trainer.comparison.reports.held_out import Answers
from evenkeel.trainer.comparison.reports.run_files import RecordedRuns

MOST_CHARACTERS = 4_000
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Sample:
    """One completion with its verdict: right, wrong or unjudged; ``cut`` characters at its end are not shown.

    ``prompt`` is given where the samples of a group have different prompts.
    """

    label: str
    verdict: str
    prompt: str | None
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


def verdict_of(record: Record) -> str:
    """``correct`` in a word."""
    return {None: "unjudged", True: "right", False: "wrong"}[record.get("correct")]


def sample_groups(runs: RecordedRuns, dataset: str) -> list[SampleGroup]:
    """Of a sweep: items as all variants answered them with their first common seed. Of one run: a few of each verdict.

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
    for verdict in ("right", "wrong", "unjudged"):
        records = [record for record in answers.counted if verdict_of(record) == verdict]
        if records:
            samples = [_sample(f"item {record['item']}", record, with_prompt=True) for record in records[:number]]
            yield SampleGroup(f"{verdict.capitalize()} ({len(records)} of {len(answers.counted)})", None, None, samples)


def _side_by_side(answers: Mapping[str, Answers]) -> Iterator[SampleGroup]:
    by_item = {name: each.first_by_item() for name, each in answers.items()}
    items = sorted(set.intersection(*map(set, by_item.values())))
    kinds: list[tuple[str, int, Callable[[set[str]], bool]]] = [
        ("the variants disagree", 2, lambda verdicts: {"right", "wrong"} <= verdicts),
        ("unjudged", 2, lambda verdicts: "unjudged" in verdicts),
        ("right in all variants", 1, lambda verdicts: verdicts == {"right"}),
        ("wrong in all variants", 1, lambda verdicts: verdicts == {"wrong"}),
    ]
    for title, number, is_kind in kinds:
        of_kind = [item for item in items if is_kind({verdict_of(each[item]) for each in by_item.values()})]
        for item in of_kind[:number]:
            first = next(iter(by_item.values()))[item]
            yield SampleGroup(
                f"Item {item}: {title} ({len(of_kind)} of {len(items)} items)",
                first.get("prompt"),
                first.get("reference"),
                [_sample(name, each[item]) for name, each in by_item.items()],
            )


def _sample(label: str, record: Record, *, with_prompt: bool = False) -> Sample:
    text = str(record.get("completion") or "")
    reasons = [f"{key.removesuffix('/reason')}: {reason}" for key, reason in record.items() if _is_reason(key, reason)]
    return Sample(
        label,
        verdict_of(record),
        str(record.get("prompt")) if with_prompt else None,
        text[:MOST_CHARACTERS],
        max(0, len(text) - MOST_CHARACTERS),
        record.get("answer"),
        reasons,
        record.get("num_tokens"),
    )


def _is_reason(key: str, reason: Any) -> bool:
    return key.endswith("/reason") and bool(reason)


def reward_names(records: Sequence[Record]) -> list[str]:
    """The rewards that scored these completions, in their order; the first decides what is right."""
    keys = dict.fromkeys(key for record in records for key in record)
    return [key.removesuffix("/score") for key in keys if key.endswith("/score")]
