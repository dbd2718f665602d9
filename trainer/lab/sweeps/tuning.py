"""Tuned comparisons: every variant at its own best point of one grid, confirmed on other seeds and other rows.

A sweep with ``tune:`` is run in two stages, each an ordinary sweep with a directory, a status and a report of its own:

    tuning        variants × tune.grid × tune.seeds, on the held-out rows of ``tune.held_out``, in <output_dir>/tuning
    confirmation  variants × seeds, each at the point that was best for it, on the held-out rows of the base file

Every variant gets the same points and seeds. The point is chosen by the mean accuracy at the last evaluation, over the
tuning's seeds and the items that all of the variant's runs were scored on; the first in the grid among equals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.reports.accuracies import final_accuracies, is_scored, mean_accuracies
from evenkeel.trainer.lab.reports.run_files import RecordedRuns, read_runs
from evenkeel.trainer.lab.sweeps.cells import cells_of, grid_points
from evenkeel.trainer.lab.sweeps.plans import Plan
from evenkeel.trainer.lab.sweeps.schema import Sweep, Tuning


@dataclass(frozen=True)
class Choice:
    """The point of the grid that a variant is confirmed at.

    Attributes:
        settings: dotted key → value.
        point: as the cells of the tuning name it: ``learning_rate=1e-3``.
        accuracies: point → mean held-out accuracy on the tuning's rows and seeds.
    """

    settings: dict[str, Any]
    point: str
    accuracies: dict[str, float]


def tuning_stage(sweep: Sweep) -> Sweep:
    """The first stage as a sweep of its own."""
    tune = tuning_of(sweep)
    return sweep.model_copy(
        update={
            "name": f"{sweep.name}-tuning",
            "output_dir": str(Path(sweep.output_dir) / "tuning"),
            "variants": {name: {**changes, **tune.held_out} for name, changes in sweep.variants.items()},
            "seeds": tune.seeds,
            "grid": tune.grid,
            "tune": None,
        }
    )


def confirmation_stage(sweep: Sweep, settings: Mapping[str, Mapping[str, Any]]) -> Sweep:
    """The second stage as a sweep of its own, with the ``settings`` of every variant's point."""
    variants = {name: {**changes, **settings[name]} for name, changes in sweep.variants.items()}
    return sweep.model_copy(update={"variants": variants, "tune": None})


def provisional_settings(sweep: Sweep) -> dict[str, dict[str, Any]]:
    """Points to check the confirmation at before anything runs: the first for the baseline, for others the last."""
    points = [settings for _, settings in grid_points(tuning_of(sweep).grid)]
    return {name: points[0] if name == sweep.baseline else points[-1] for name in sweep.variants}


def check_stages(tuning: Sequence[Plan], confirmation: Sequence[Plan]) -> None:
    """Refuse a tuning that would choose on the confirmation's rows."""
    for plan in tuning:
        if plan.config.data.test_sources == confirmation[0].config.data.test_sources:
            raise Refusal(
                "tune.held_out names the verdict's own rows. Name others, such as {data.test.generator.seed: 1}."
            )


def choices(sweep: Sweep, directory: Path) -> dict[str, Choice]:
    """Variant → its best point, from the runs under the tuning's directory; a `Refusal` where one is missing."""
    tune, runs = tuning_of(sweep), read_runs(directory)
    there = {(run.variant, run.seed) for run in runs.all}
    planned = cells_of(tuning_stage(sweep))
    if absent := [each.name for each in planned if (each.variant, each.seed) not in there]:
        names = ", ".join(absent)
        raise Refusal(f"The tuning in {directory} lacks {names}: budgets would be unequal. Run the sweep again.")
    return {name: _choice(name, tune, runs) for name in sweep.variants}


def _choice(variant: str, tune: Tuning, runs: RecordedRuns) -> Choice:
    points = grid_points(tune.grid)
    found = [runs.by_variant[variant + suffix][seed] for suffix, _ in points for seed in tune.seeds]
    dataset = next(iter(found[0].held_out()), "")
    scored = all(is_scored(run, dataset) for run in found)
    final = mean_accuracies(final_accuracies(found, dataset)) if scored else np.array([np.nan])
    if np.isnan(final).any():
        raise Refusal(f"The tuning runs of {variant} have no held-out item on which all were scored. See their report.")
    by_point = final.reshape(len(points), -1).mean(1)
    best = int(np.argmax(by_point))
    return Choice(
        points[best][1],
        points[best][0].removeprefix(","),
        {suffix.removeprefix(","): float(mean) for (suffix, _), mean in zip(points, by_point, strict=True)},
    )


def tuning_record(sweep: Sweep, chosen: Mapping[str, Choice]) -> dict[str, Any]:
    """The tuning as ``sweep.json`` records it for the report."""
    tune = tuning_of(sweep)
    return {**tune.model_dump(), "chosen": {name: asdict(choice) for name, choice in chosen.items()}}


def tuning_of(sweep: Sweep) -> Tuning:
    """The tuning of a sweep that has one."""
    assert sweep.tune is not None
    return sweep.tune
