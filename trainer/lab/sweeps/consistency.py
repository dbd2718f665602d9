"""What is wrong between the parts of a sweep's file, each of which is right."""

from collections.abc import Iterator

from evenkeel.errors import Problem
from evenkeel.trainer.lab.sweeps.schema import LocalExecution, Sweep, Tuning

RESERVED_KEYS = {
    "name": "A cell is named by its variant and seed.",
    "output_dir": "Every cell has a directory of its own under the sweep's `output_dir:`.",
    "seed": "Write the seeds of all variants under `seeds:`.",
    "branch_of": "Write the checkpoints under `from:`.",
}
GPUS = "CUDA_VISIBLE_DEVICES"


def inconsistencies(sweep: Sweep) -> Iterator[Problem]:
    """Every problem of this kind, by its path in the file."""
    if sweep.baseline not in sweep.variants:
        what = f"is {sweep.baseline!r}, which is none of the variants."
        instead = f"Write one of {', '.join(sweep.variants)}."
        yield Problem(("baseline",), what, instead, code="unknown-baseline")
    for name in sweep.variants:
        if "," in name or "=" in name:
            what = "holds a comma or an equals sign."
            yield Problem(("variants", name), what, "Join words with _ or -.", code="name-of-variant")
    yield from _keys(sweep)
    if sweep.tune is not None:
        yield from _tuning(sweep, sweep.tune)
    if GPUS in sweep.environment and isinstance(sweep.executor, LocalExecution):
        what, instead = "is set for every cell by the sweep.", f"Start the sweep with it: {GPUS}=… evenkeel sweep run …"
        yield Problem(("environment", GPUS), what, instead, code="decided-by-sweep")


def _keys(sweep: Sweep) -> Iterator[Problem]:
    tuned = {} if sweep.tune is None else sweep.tune.grid
    places = [("variants", name, key) for name, changes in sweep.variants.items() for key in changes]
    for place in (*places, *(("grid", key) for key in sweep.grid), *(("tune", "grid", key) for key in tuned)):
        if place[-1] in RESERVED_KEYS:
            yield Problem(place, "is the sweep's to say.", RESERVED_KEYS[place[-1]], code="decided-by-sweep")
    for place in places:
        if place[-1] in {**sweep.grid, **tuned}:
            what = "is also in the grid, which would replace it."
            yield Problem(place, what, "Write it in one of the two places.", code="also-in-grid")


def _tuning(sweep: Sweep, tune: Tuning) -> Iterator[Problem]:
    if shared := [seed for seed in tune.seeds if seed in sweep.seeds]:
        what = f"holds {', '.join(map(str, shared))}, on which the verdict rests too."
        instead = "Write seeds that are not under `seeds:`."
        yield Problem(("tune", "seeds"), what, instead, code="confirmed-on-tuning-seeds")
    if sweep.grid:
        what = "cannot be combined with `tune:`."
        yield Problem(("grid",), what, "Write its keys under `tune: {grid: …}`.", code="grid-and-tune")
    for key in tune.held_out:
        if not key.startswith("data.test."):
            what = "is not a setting of the held-out rows."
            instead = "Write settings below data.test."
            yield Problem(("tune", "held_out", key), what, instead, code="not-held-out-rows")
