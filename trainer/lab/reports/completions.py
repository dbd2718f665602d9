"""Completions to read, chosen by a rule that the page states: of a sweep the same item side by side."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evenkeel.trainer.evaluation.differences import VERDICT_OF
from evenkeel.trainer.lab.reports.held_out import Answers
from evenkeel.trainer.lab.reports.run_files import RecordedRuns

Record = Mapping[str, Any]


@dataclass(frozen=True)
class SampleGroup:
    """Completions shown side by side, as (label, verdict, record) each, and what they have in common."""

    title: str
    prompt: str | None
    reference: str | None
    samples: list[tuple[str, str, Record]]


def sample_groups(runs: RecordedRuns, dataset: str) -> list[SampleGroup]:
    """For a sweep, items answered by all variants with their first common seed; for one run three completions.

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
    """The first completion of each verdict, then the longest of the others: ``number`` in all."""
    records = answers.counted
    verdicts = [VERDICT_OF[record.get("correct")] for record in records]
    firsts = [verdicts.index(verdict) for verdict in VERDICT_OF.values() if verdict in verdicts]
    others = [place for place in range(len(records)) if place not in firsts]
    others.sort(key=lambda place: -(records[place].get("num_tokens") or 0))
    for place in [*firsts, *others][:number]:
        record, verdict = records[place], verdicts[place]
        why = "the first" if place in firsts else "the longest of the others"
        title = f"{verdict.capitalize()} ({verdicts.count(verdict)} of {len(records)}), {why}: row {record['item']}"
        yield SampleGroup(title, record.get("prompt"), record.get("reference"), [("", verdict, record)])


def _side_by_side(answers: Mapping[str, Answers]) -> Iterator[SampleGroup]:
    # of each item the first completion
    by_item = {name: {one["item"]: one for one in reversed(each.counted)} for name, each in answers.items()}
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
                [(name, VERDICT_OF[each[item].get("correct")], each[item]) for name, each in by_item.items()],
            )
