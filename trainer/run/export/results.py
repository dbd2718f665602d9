"""What a run's evaluations say of the exported step, with their intervals."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.run.records import DamagedFileError, EvaluationRecord, read_record


@dataclass(frozen=True)
class Result:
    """One metric of one held-out set, before training and at the exported step; a side is ``None`` if not measured."""

    dataset: str
    metric: str
    items: int
    before: str | None
    after: str | None


def results(run: Path, step: int) -> list[Result]:
    """Every metric that was measured of the policy at ``step``, the base's beside it."""
    found = []
    for folder in sorted(path for path in (run / "evaluations").glob("*") if path.is_dir()):
        before, after = (_summary(folder, at) for at in (0, step))
        for metric, value in _metrics(after).items():
            base = _metrics(before).get(metric) if step else None
            said = None if base is None else _text(base)
            found.append(Result(folder.name, metric, after["n_items"], said, _text(value)))
    return found


def evaluated_steps(run: Path) -> list[int]:
    """The steps at which any held-out set was answered, in their order."""
    files = (run / "evaluations").glob("*/step-*.json")
    return sorted({int(step) for file in files if (step := file.stem.removeprefix("step-")).isdecimal()})


def how_measured(run: Path, step: int) -> str:
    """The sampling behind the numbers of ``step``, in words; empty where nothing was measured."""
    for folder in sorted((run / "evaluations").glob("*")):
        summary = _summary(folder, step)
        if summary:
            drawn = f"{summary['k']} sampled at temperature {summary['temperature']:g}" if summary["k"] else ""
            greedy = "one greedy" if "greedy" in summary else ""
            return f"Completions of each row: {' and '.join(filter(None, (drawn, greedy)))}. {summary['interval']}."
    return ""


def _summary(folder: Path, step: int) -> dict[str, Any]:
    file = folder / f"step-{step:06d}.json"
    instead = "Bring it back, or delete it: the card then quotes no numbers of it."
    summary = read_record(file, EvaluationRecord, instead) if file.exists() else {}
    for name, value in summary.items():
        for side in ("value", "low", "high") if isinstance(value, dict) else ():
            found = value.get(side)
            if isinstance(found, bool) or not isinstance(found, int | float | None):
                raise DamagedFileError(f"{file} is damaged: {name}.{side} is {found!r}, and no number. {instead}")
        if isinstance(value, dict) and value.get("value") is not None and None in (value.get("low"), value.get("high")):
            raise DamagedFileError(f"{file} is damaged: {name} has a value and no interval. {instead}")
    return summary


def _metrics(summary: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {
        name: value
        for name, value in summary.items()
        if isinstance(value, dict) and {"value", "low", "high"} <= value.keys() and value["value"] is not None
    }


def _text(value: dict[str, float]) -> str:
    return f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"
