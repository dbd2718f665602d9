"""What a run's evaluations say of the exported step, with their intervals."""

from dataclasses import dataclass
from typing import Any

from trainer.run.record import RunRecord


@dataclass(frozen=True)
class Result:
    """One metric of one held-out set, before training and at the exported step; a side is ``None`` if not measured."""

    dataset: str
    metric: str
    items: int
    before: str | None
    after: str | None


def results(record: RunRecord, step: int) -> list[Result]:
    """Every metric that was measured of the policy at ``step``, the base's beside it."""
    found = []
    for dataset in record.evaluations:
        before, after = (record.evaluation(dataset, at) for at in (0, step))
        for metric, value in _metrics(after).items():
            base = _metrics(before).get(metric) if step else None
            shown = None if base is None else _text(base)
            found.append(Result(dataset, metric, after["n_items"], shown, _text(value)))
    return found


def evaluated_steps(record: RunRecord) -> list[int]:
    """The steps at which any held-out set was answered, in their order."""
    return sorted({step for steps in record.evaluations.values() for step in steps})


def how_measured(record: RunRecord, step: int) -> str:
    """The sampling behind the numbers of ``step``, in words; empty where nothing was measured."""
    for dataset in record.evaluations:
        if summary := record.evaluation(dataset, step):
            drawn = f"{summary['k']} sampled at temperature {summary['temperature']:g}" if summary["k"] else ""
            greedy = "one greedy" if "greedy" in summary else ""
            return f"Completions of each row: {' and '.join(filter(None, (drawn, greedy)))}. {summary['interval']}."
    return ""


def _metrics(summary: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {
        name: value
        for name, value in summary.items()
        if isinstance(value, dict) and {"value", "low", "high"} <= value.keys() and value["value"] is not None
    }


def _text(value: dict[str, float]) -> str:
    return f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"
