"""What is wrong between the parts of a sweep's file, each of which may be right.

Asked of the data as written, so that a wrong word in one place hides nothing that is wrong in another: what has another
shape than it should is passed over here, for `schema` refuses it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import InitErrorDetails

from evenkeel.trainer.run.config.problems import problem

RESERVED_KEYS = {
    "name": "A cell is named by its variant and seed.",
    "output_dir": "Every cell has a directory of its own under the sweep's `output_dir:`.",
    "seed": "Write the seeds of all variants under `seeds:`.",
    "trl.seed": "Write the seeds of all variants under `seeds:`.",
    "branch_of": "Write the checkpoints under `from:`.",
    "extends": "The base of all cells is the file that `config:` names.",
}


def inconsistencies(data: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    """Everything of this kind, at its place in ``data``."""
    variants, grid = _mapping(data.get("variants")), _mapping(data.get("grid"))
    yield from _baseline(data.get("baseline"), variants)
    yield from _seeds(data.get("seeds"), "seeds")
    yield from _seeds(_mapping(data.get("tune")).get("seeds"), "tune", "seeds")
    yield from _keys(variants, grid, _mapping(_mapping(data.get("tune")).get("grid")))
    yield from _variants(variants, grid)
    yield from _tuning(_mapping(data.get("tune")), data, variants)
    yield from _environment(_mapping(data.get("environment")), _mapping(data.get("executor")))


def _baseline(baseline: Any, variants: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    if variants and isinstance(baseline, str) and baseline not in variants:
        what = f"is {baseline!r}, which is none of the variants."
        yield problem("unknown-baseline", what, f"Write one of {', '.join(variants)}.", ("baseline",))


def _seeds(given: Any, *place: str) -> Iterator[InitErrorDetails]:
    seeds = [seed for seed in given if type(seed) is int] if isinstance(given, list) else []
    if twice := sorted({seed for seed in seeds if seeds.count(seed) > 1}):
        what = f"holds {', '.join(map(str, twice))} twice, and the second run would repeat the first."
        yield problem("seed-twice", what, "Write each seed once.", place)


def _keys(variants: Mapping[str, Any], grid: Mapping[str, Any], tuned: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    places: list[tuple[str, ...]] = [("variants", name, key) for name in variants for key in _mapping(variants[name])]
    for place in (*places, *(("grid", key) for key in grid), *(("tune", "grid", key) for key in tuned)):
        if place[-1] in RESERVED_KEYS:
            yield problem("decided-by-sweep", "is the sweep's to say.", RESERVED_KEYS[place[-1]], place)


def _variants(variants: Mapping[str, Any], grid: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    for name, changes in variants.items():
        if "," in name or "=" in name:
            what = "holds a comma or an equals sign, with which a point of the grid is added to a variant's name."
            yield problem("name-of-variant", what, "Join words with _ or -.", ("variants", name))
        for key in set(_mapping(changes)) & set(grid):
            what = "is also in `grid:`, which would replace it."
            yield problem("also-in-grid", what, "Write it in one of the two places.", ("variants", name, key))


def _tuning(
    tune: Mapping[str, Any], data: Mapping[str, Any], variants: Mapping[str, Any]
) -> Iterator[InitErrorDetails]:
    yield from _tuning_seeds(tune.get("seeds"), data.get("seeds"))
    grid = _mapping(tune.get("grid"))
    if tune and data.get("grid"):
        what = "stands beside `tune:`, and a variant cannot be at its own best point and at every point of a grid."
        yield problem("grid-and-tune", what, "Write its keys under `tune: {grid: …}`, or leave `tune:` out.", ("grid",))
    if grid and all(isinstance(values, list) and len(values) == 1 for values in grid.values()):
        what = "is a single point, so there is nothing to choose."
        yield problem("single-point", what, "Write several values.", ("tune", "grid"))
    for key in grid:
        for name in (name for name, changes in variants.items() if key in _mapping(changes)):
            what = "is also in `tune: {grid: …}`, which would replace it."
            yield problem("also-in-tune-grid", what, "Write it in one of the two places.", ("variants", name, key))
    for key in _mapping(tune.get("held_out")):
        if not f"{key}.".startswith("data.test."):
            what = "is not a setting of the held-out rows; all else must be while tuning as it is when confirmed."
            yield problem("not-held-out-rows", what, "Write settings below data.test.", ("tune", "held_out", key))


def _tuning_seeds(tuning: Any, confirmation: Any) -> Iterator[InitErrorDetails]:
    if not isinstance(tuning, list) or not isinstance(confirmation, list):
        return
    if shared := [seed for seed in tuning if seed in confirmation]:
        what = f"holds {', '.join(map(str, shared))}, on which the verdict rests too: it would confirm its own choice."
        yield problem("confirmed-on-tuning-seeds", what, "Write seeds that are not under `seeds:`.", ("tune", "seeds"))


def _environment(environment: Mapping[str, Any], executor: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    name = "CUDA_VISIBLE_DEVICES"
    if name in environment and executor.get("kind", "local") == "local":
        gpus = environment[name]
        what = "is set for every cell by the sweep, so that no two share a GPU."
        instead = f"Leave it out and start the sweep with it: {name}={gpus} evenkeel sweep run …"
        yield problem("decided-by-sweep", what, instead, ("environment", name))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
