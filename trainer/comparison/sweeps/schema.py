"""The YAML file of a sweep as frozen, strict models, each value by itself; combinations of values: `consistency`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evenkeel.trainer.run.config.section import Count, LocalPath, Name, Text


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class LocalExecution(_Section):
    """Cells on this machine: ``parallel`` at a time, each with ``gpus_per_cell`` GPUs of its own.

    Where ``gpus_per_cell`` is not given, a cell that trains on the CPU (``trl.use_cpu``) or on a machine without GPUs
    gets none, and any other as many as it has processes.
    """

    kind: Literal["local"] = "local"
    parallel: Count = 1
    gpus_per_cell: Annotated[int, Field(ge=0)] | None = None


class SlurmExecution(_Section):
    """Cells as SLURM jobs of ``nodes`` nodes with ``gpus`` GPUs each; at most ``parallel`` in the queue.

    ``time`` is in minutes. ``stop_before_end`` seconds before its time is over the job gets a signal: it saves a
    checkpoint, and its cell is submitted again. ``arguments`` are further sbatch options, ``setup`` shell lines to run
    first.
    """

    kind: Literal["slurm"]
    time: Count
    partition: Text | None = None
    account: Text | None = None
    qos: Text | None = None
    constraint: Text | None = None
    nodes: Count = 1
    gpus: Annotated[int, Field(ge=0)] = 0
    cpus: Count | None = None
    memory_gb: Count | None = None
    parallel: Count = 64
    stop_before_end: Count = 300
    setup: list[Text] = []
    arguments: dict[str, str | int | bool] = {}


class Tuning(_Section):
    """Every variant at its own best point, chosen on ``seeds`` and on held-out rows that the verdict does not use.

    ``grid`` is dotted key → values; every variant is tried at every point. ``held_out`` replaces settings of
    ``data.test`` while tuning.
    """

    grid: Annotated[dict[Text, Annotated[list[Any], Field(min_length=1)]], Field(min_length=1)]
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    held_out: Annotated[dict[Text, Any], Field(min_length=1)]


class Stopping(_Section):
    """Looks at every comparison while its seeds come in; see `sweeps.stopping`.

    Attributes:
        looks: after how many of the first ``seeds``; the last of them all.
        futility: if the chance that the last look gives a verdict is below this, no further cells are started. It may
            be changed at any time; 0 = never stop for this reason.
    """

    rule: Literal["group_sequential"]
    looks: Annotated[list[Count], Field(min_length=1)]
    futility: Annotated[float, Field(ge=0, le=0.5)] = 0.1


class Sweep(_Section):
    """One comparison: a base run, variants as dotted overrides, seeds, and how the cells are run.

    Attributes:
        config: the base run file, relative to the sweep's file or the current directory.
        grid: dotted key → values; every variant is run at every point.
        tune: a stage before, in which every variant is given its own best settings; see `sweeps.tuning`.
        stopping: looks before all seeds are run, which end decided and hopeless comparisons.
        rollouts: number of rollout batches of every cell; without it the base file's.
        launch: arguments of ``accelerate launch``.
        environment: variables set for every cell.
        retries: how often a failed cell is run again.
        cell_minutes: how long one attempt at a cell may take; ``None``: see `sweeps.overdue`.
        unfair: settings in which variants may differ although that makes them hard to compare.
    """

    name: Name
    config: Text
    variants: Annotated[dict[Name, dict[Text, Any]], Field(min_length=1)]
    baseline: Text
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    grid: dict[Text, Annotated[list[Any], Field(min_length=1)]] = {}
    tune: Tuning | None = None
    stopping: Stopping | None = None
    rollouts: Count | None = None
    output_dir: LocalPath
    launch: dict[str, str | int | float | bool] = {}
    executor: LocalExecution = LocalExecution()
    environment: dict[str, str] = {}
    retries: Annotated[int, Field(ge=0)] = 1
    cell_minutes: Annotated[float, Field(gt=0)] | None = None
    unfair: list[Text] = []


class SlurmSweep(Sweep):
    """A sweep whose cells are SLURM jobs."""

    executor: SlurmExecution  # type: ignore[assignment]
