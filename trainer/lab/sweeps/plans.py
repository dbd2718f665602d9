"""Configuration and budget of each cell; budgets are made equal where possible.

A variant may make more optimizer steps of a rollout batch than the base file (Lopti makes two passes; smaller updates
make more). Settings that TRL counts in optimizer steps are therefore multiplied by

    optimizer steps per rollout batch of the cell / of the base file

so that every cell sees the same prompts, warms up, saves and evaluates after the same number of rollout batches. A key
that a variant sets itself is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from evenkeel.errors import Problem, Refusal
from evenkeel.trainer.lab.sweeps.cells import Cell, override_value
from evenkeel.trainer.lab.sweeps.loading import located_in_sweep
from evenkeel.trainer.lab.sweeps.schema import Sweep
from evenkeel.trainer.run.branch import branch_of
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.yaml_document import Node
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.launcher import parsed

COUNTED_IN_STEPS = ("trl.max_steps", "trl.save_steps", "trl.warmup_steps", "evaluation.every_steps")


@dataclass(frozen=True)
class Budget:
    """The budget of a cell; ``rollouts`` and ``optimizer_steps`` are ``None`` where the run is counted in epochs.

    Attributes:
        rollouts: rollout batches that are generated and trained.
        steps_per_rollout: optimizer steps in which one of them is trained, over all passes of the update schedule.
    """

    rollouts: Fraction | None
    prompts_per_rollout: int
    steps_per_rollout: int
    optimizer_steps: int | None


@dataclass(frozen=True)
class Plan:
    """A cell ready to start: its resolved configuration, its budget, and the arguments of the training script."""

    cell: Cell
    config: RunConfig
    budget: Budget
    overrides: list[str]

    @property
    def merged(self) -> str:
        """The cell's merged configuration as JSON, without name, seed, output directory and parent."""
        return self.config.model_dump_json(exclude={"name", "seed", "output_dir", "branch_of"})


def plans_of(sweep: Sweep, cells: Sequence[Cell], tree: Node) -> list[Plan]:
    """Every cell with its configuration checked and its settings in optimizer steps set.

    Raises:
        Refusal: a cell's configuration or strategy is wrong, or it cannot begin in the checkpoint of its seed; each
            problem once, at the line of its variant. Or the launcher cannot be started with the sweep's arguments.
    """
    processes = processes_of(sweep)
    base = Experiment.of_file(sweep.config)
    # as its file means it, not as it is launched here
    base.processes = base.config.num_processes or 1
    base_steps = base.steps_per_rollout
    plans, problems = [], []
    for cell in cells:
        try:
            plans.append(_plan(sweep, cell, base_steps, processes))
        except Refusal as error:
            problems += [located_in_sweep(problem, cell, tree) for problem in error.problems]
    if not problems and any(plan.config.data.test is None for plan in plans):
        what = "has no held-out rows to compare variants on."
        origin = tree.value["config"].origin if "config" in tree.value else tree.origin
        problems.append(Problem(("config",), what, "Write `data: {test: …}` there.", origin, code="no-held-out-rows"))
    if problems:
        raise Refusal(problems=list(dict.fromkeys(problems)))
    return plans


def processes_of(sweep: Sweep) -> int:
    """Processes that the launcher starts for each cell, over all nodes; a `Refusal` where it cannot be started."""
    return parsed([*launch_options(sweep), "-m", "evenkeel"])[1]


def launch_options(sweep: Sweep) -> list[str]:
    """The sweep's ``launch:`` as command-line arguments; ``true`` gives a bare flag, ``false`` none."""
    words = list[str]()
    for name, value in sweep.launch.items():
        if value is not False:
            words.append(f"--{name}")
        if not isinstance(value, bool):
            words.append(str(value))
    return words


def _plan(sweep: Sweep, cell: Cell, base_steps: int, processes: int) -> Plan:
    own = [*cell.overrides, f"seed={cell.seed}", f"name={override_value(cell.variant)}"]
    if sweep.parents:
        own.append(f"branch_of={override_value(sweep.parents[sweep.seeds.index(cell.seed)])}")
    experiment = Experiment.of_file(sweep.config, own, processes=processes)
    steps = experiment.steps_per_rollout
    scaled = _scaled(sweep, cell, experiment.config, steps, base_steps)
    overrides = [*own, *(f"{key}={value}" for key, value in scaled.items())]
    if scaled:
        experiment = Experiment.of_file(sweep.config, overrides, processes=processes)
    branch_of(experiment, None)
    most = experiment.config.trl.get("max_steps", -1)
    rollouts, optimizer_steps = (Fraction(most, steps), most) if most > 0 else (None, None)
    budget = Budget(rollouts, experiment.plan.prompts_per_rollout, steps, optimizer_steps)
    return Plan(cell, experiment.config, budget, overrides)


def _scaled(sweep: Sweep, cell: Cell, config: RunConfig, steps: int, base_steps: int) -> dict[str, int]:
    """The settings counted in optimizer steps that must change for the cell to be counted in rollout batches."""
    changed = {}
    for key in COUNTED_IN_STEPS:
        section, _, name = key.partition(".")
        value = config.trl.get(name) if section == "trl" else getattr(getattr(config, section), name)
        if key in cell.settings:
            continue
        if key == "trl.max_steps" and sweep.rollouts is not None:
            changed[key] = sweep.rollouts * steps
        elif isinstance(value, int) and value > 0 and steps != base_steps:
            exact = Fraction(value * steps, base_steps)
            if exact.denominator != 1:
                what = f"is {value} in the base file; {cell.variant!r} would need {float(exact):g}."
                raise config_error("cut-rollout", key, what, f"Write a multiple of {base_steps} in the base file.")
            changed[key] = int(exact)
    return changed
