"""The YAML file of a sweep as frozen, strict models, and the checks across their fields."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import InitErrorDetails

from evenkeel.trainer.lab.reports.outcomes import OutcomeName
from evenkeel.trainer.run.config.problems import problem, raise_all
from evenkeel.trainer.run.config.section import Count, LocalPath, Name, Section, Text

RESERVED_KEYS = {
    "name": "A cell is named by its variant and seed.",
    "output_dir": "Every cell has a directory of its own under the sweep's `output_dir:`.",
    "seed": "Write the seeds of all variants under `seeds:`.",
    "branch_of": "Write the checkpoints under `from:`.",
}
GPUS = "CUDA_VISIBLE_DEVICES"


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


ParentRuns = Annotated[list[Text], BeforeValidator(_listed, json_schema_input_type=Text | list[Text])]


class LocalExecution(Section):
    """Cells on this machine."""

    kind: Literal["local"] = "local"
    """On this machine."""
    parallel: Count = 1
    """Cells at a time, each with as many of the visible GPUs for itself as it has processes."""


class SlurmExecution(Section):
    """Cells as SLURM jobs."""

    kind: Literal["slurm"]
    """As jobs of SLURM."""
    time: Count
    """Minutes of a job."""
    nodes: Count = 1
    """Nodes of a job."""
    gpus: Annotated[int, Field(ge=0)] = 0
    """GPUs of each node."""
    parallel: Count = 64
    """Jobs in the queue at most."""
    stop_before_end: Count = 300
    """Seconds before its end at which a job saves a checkpoint; its cell is submitted again."""
    setup: list[Text] = Field(default_factory=list)
    """Shell lines to run first."""
    arguments: dict[str, str | int | bool] = Field(default_factory=dict)
    """Options of sbatch: ``{partition: gpu, cpus-per-task: 16, mem: 64G}``."""


def _kind(executor: Any) -> Any:
    return executor.get("kind", "local") if isinstance(executor, dict) else getattr(executor, "kind", "local")


Execution = Annotated[
    Annotated[LocalExecution, Tag("local")] | Annotated[SlurmExecution, Tag("slurm")],
    Discriminator(
        _kind,
        custom_error_type="unknown-executor",
        custom_error_message="{what} {instead}",
        custom_error_context={"what": "is of another kind.", "instead": "Write kind: local or kind: slurm."},
    ),
]


class Tuning(Section):
    """Every variant at its own best point, chosen on seeds and held-out rows that the verdict does not use."""

    grid: Annotated[dict[Text, Annotated[list[Any], Field(min_length=1)]], Field(min_length=1)]
    """Dotted key → values; every variant is tried at every point."""
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    """None of the sweep's own."""
    held_out: Annotated[dict[Text, Any], Field(min_length=1)]
    """Settings of ``data.test`` while tuning, by dotted key."""


class Sweep(Section):
    """One comparison: a base run, variants as dotted overrides, seeds, and how the cells are run."""

    name: Name
    """Of the sweep; where the file gives none, the file's own without ``.yaml``. It is never inherited."""
    config: Text
    """The run file that all cells start from, relative to the sweep's file or the current directory."""
    parents: ParentRuns = Field(default_factory=list, alias="from")
    """In place of ``config`` and ``seeds``: checkpoints of runs, ``runs/base@80``, one for each seed. Every cell starts
    from that of its seed; optimizer steps and ``rollouts`` count from the start of that run.
    """
    variants: Annotated[dict[Name, dict[Text, Any]], Field(min_length=1)]
    """Name, as shown in reports → dotted settings over the base: ``ar: {algorithm.token_weight: adv_reweight}``."""
    baseline: Text
    """The variant that the others are compared with."""
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    """Every variant is run with each; fewer than three give no verdict."""
    grid: dict[Text, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    """Dotted key → values; every variant is run at every point."""
    outcomes: Annotated[list[OutcomeName], Field(min_length=1)] = Field(default=["accuracy"])
    """What variants are compared in: the list is in trainer/lab."""
    tune: Tuning | None = None
    """A stage before, in which every variant is given its own best settings."""
    rollouts: Count | None = None
    """Rollout batches of every cell; ``null`` = the base file's."""
    output_dir: LocalPath
    """Where everything is written; where the file gives none, ``runs/sweeps/<name>``. It is never inherited."""
    launch: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Arguments of ``evenkeel launch``: ``{config_file: configs/accelerate/zero2.yaml, num_processes: 8}``."""
    executor: Execution = LocalExecution()
    """Where the cells are run."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables that are set for every cell."""
    retries: Annotated[int, Field(ge=0)] = 1
    """Times that a failed cell is run again; one that was refused (exit status 2) is not."""
    unfair: list[Text] = Field(default_factory=list)
    """Settings in which variants may differ although that makes them hard to compare."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        raise_all(_inconsistencies(self))
        return self


def _inconsistencies(sweep: Sweep) -> Iterator[InitErrorDetails]:
    if sweep.baseline not in sweep.variants:
        what = f"is {sweep.baseline!r}, which is not a variant."
        yield problem("unknown-baseline", what, f"Write one of {', '.join(sweep.variants)}.", ("baseline",))
    for name in sweep.variants:
        if "," in name or "=" in name:
            what = "holds a comma or an equals sign."
            yield problem("name-of-variant", what, "Join words with _ or -.", ("variants", name))
    tuned = {} if sweep.tune is None else sweep.tune.grid
    places = [("variants", name, key) for name, changes in sweep.variants.items() for key in changes]
    for place in (*places, *(("grid", key) for key in sweep.grid), *(("tune", "grid", key) for key in tuned)):
        if place[-1] in RESERVED_KEYS:
            yield problem("decided-by-sweep", "is set by the sweep.", RESERVED_KEYS[place[-1]], place)
    for place in places:
        if place[-1] in {**sweep.grid, **tuned}:
            what = "is also in the grid, which would replace it."
            yield problem("also-in-grid", what, "Write it in one of the two places.", place)
    if sweep.tune is not None:
        yield from _tuning_inconsistencies(sweep, sweep.tune)
    if GPUS in sweep.environment and isinstance(sweep.executor, LocalExecution):
        what, instead = "is set for every cell by the sweep.", f"Start the sweep with it: {GPUS}=… evenkeel sweep run …"
        yield problem("decided-by-sweep", what, instead, ("environment", GPUS))


def _tuning_inconsistencies(sweep: Sweep, tune: Tuning) -> Iterator[InitErrorDetails]:
    if shared := [seed for seed in tune.seeds if seed in sweep.seeds]:
        what = f"holds {', '.join(map(str, shared))}, which the verdict uses too."
        yield problem("confirmed-on-tuning-seeds", what, "Write seeds that are not under `seeds:`.", ("tune", "seeds"))
    if sweep.grid:
        what = "cannot be combined with `tune:`."
        yield problem("grid-and-tune", what, "Write its keys under `tune: {grid: …}`.", ("grid",))
    for key in tune.held_out:
        if not key.startswith("data.test."):
            what = "is not a setting of the held-out rows."
            yield problem("not-held-out-rows", what, "Write settings below data.test.", ("tune", "held_out", key))
