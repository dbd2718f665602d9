"""The commands of `evenkeel sweep`; each prints what happens and returns the exit status."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal, suggest
from evenkeel.trainer.lab.reports.tables import print_table
from evenkeel.trainer.lab.sweeps.attempt import rendezvous
from evenkeel.trainer.lab.sweeps.cells import cells_of
from evenkeel.trainer.lab.sweeps.checking import checked_plans, environment_of_cells
from evenkeel.trainer.lab.sweeps.forking import Forks
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.plans import Plan, plans_of, processes_of
from evenkeel.trainer.lab.sweeps.queues import Queue, SlurmQueue, local_queue
from evenkeel.trainer.lab.sweeps.runner import SweepRunner, write_sweep
from evenkeel.trainer.lab.sweeps.schema import SlurmExecution, Sweep
from evenkeel.trainer.lab.sweeps.starting import QueuedCell, changed_settings, launcher_of, next_attempt, queued_cells
from evenkeel.trainer.lab.sweeps.status import status_table
from evenkeel.trainer.lab.sweeps.tuning import (
    check_stages,
    choices,
    confirmation_stage,
    provisional_settings,
    tuning_record,
    tuning_stage,
)
from evenkeel.trainer.run.record.directory import owned


def run(file: Path, parents: Sequence[str] = ()) -> int:
    """Check every cell, run them, and end with the table: 0 all finished, 1 some failed, 130 stopped on request.

    ``parents`` are checkpoints that the cells start from, in place of the file's ``from``.
    """
    sweep, tree = load_sweep(file, parents)
    if sweep.tune is None:
        (plans,) = checked_plans(tree, sweep)
        return _run_cells(sweep, plans, file, parents=parents)
    tuning = tuning_stage(sweep)
    plans, provisional = checked_plans(tree, tuning, confirmation_stage(sweep, provisional_settings(sweep)))
    check_stages(plans, provisional)
    each = len(plans) // len(sweep.variants)
    print(f"Tuning: {each} runs of every variant; each takes its best point to {len(sweep.seeds)} fresh seeds.")
    if status := _run_cells(tuning, plans, file):
        return status
    chosen = choices(sweep, Path(tuning.output_dir))
    for variant, choice in chosen.items():
        print(f"{variant} is confirmed at {choice.point}.")
    confirmation = confirmation_stage(sweep, {name: choice.settings for name, choice in chosen.items()})
    (plans,) = checked_plans(tree, confirmation)
    return _run_cells(confirmation, plans, file, tuning_record(sweep, chosen))


def _run_cells(
    sweep: Sweep,
    plans: Sequence[Plan],
    file: Path,
    tuning: Mapping[str, Any] | None = None,
    parents: Sequence[str] = (),
) -> int:
    """One stage from its plans to its table; the exit status of `run`."""
    root = Path(sweep.output_dir).absolute()
    root.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.callback(owned(root).release)
        forks = stack.enter_context(closing(Forks(launcher_of(sweep), root / "forks.log", sweep.environment)))
        cells = queued_cells(sweep, plans)
        refused = _refused_as_changed(cells)
        write_sweep(sweep, plans, root, file, tuning)
        entries = [cell for cell in cells if cell not in refused]
        queue = _queue(sweep, plans, root, forks)
        say = partial(print, flush=True)
        completed = SweepRunner(sweep, entries, queue, say).run()
    print_table(status_table(root))
    for cell in cells:
        if cell.directory.state() == "failed":
            print(f"\n{cell.name} failed; the end of {cell.directory.log}:\n{cell.directory.log_end()}")
    if not completed:
        command = " ".join(["branch", *parents] if parents else ["sweep run"])
        print(f"Stopped. To continue:  evenkeel {command} {file}")
        return 130
    return int(any(not cell.directory.summary() for cell in cells) or bool(refused))


def run_cell(file: Path, name: str) -> int:
    """Run the cell of this name here, as `run` would."""
    sweep, tree = load_sweep(file)
    if sweep.tune is not None:
        raise Refusal("The settings of cells are known after the tuning: use `evenkeel sweep run`.")
    (plans,) = checked_plans(tree, sweep)
    cells = {cell.name: cell for cell in queued_cells(sweep, plans)}
    if name not in cells:
        listed = f"Cells: {', '.join(cells)}."
        raise Refusal(f"There is no cell {name}. {suggest(name, cells, listed)}")
    cell = cells[name]
    if cell.directory.is_running():
        raise Refusal(f"{cell.name} is running; follow it in {cell.directory.log}.")
    if _refused_as_changed([cell]):
        return 2
    if not cell.directory.summary():
        write_sweep(sweep, plans, cell.directory.path.parent, file)
        attempt = next_attempt(sweep, cell)
        print(f"{cell.name} runs; its output is in {cell.directory.log}", flush=True)
        attempt.run(0, rendezvous(0, ["localhost"], "0"), in_terminal=True)
    print_table(status_table(cell.directory.path.parent, only=cell.name))
    return {"finished": 0, "stopped": 130}.get(cell.directory.state(), 1)


def report(file: Path, parents: Sequence[str] = ()) -> int:
    """report.html, report.md and their picture in the sweep's directory; ``parents`` as of `run`."""
    from evenkeel.trainer.lab.reports.page import print_report

    return print_report(_started(file, parents))


def check_unchanged(file: Path) -> None:
    """Refuse to rest on runs that are not there, or were made with other settings than the sweep's files have now."""
    root = _started(file)
    sweep, tree = load_sweep(file)
    stages = [sweep]
    if sweep.tune is not None:
        settings = {name: choice.settings for name, choice in choices(sweep, root / "tuning").items()}
        stages = [tuning_stage(sweep), confirmation_stage(sweep, settings)]
    with environment_of_cells(sweep.environment):
        plans = [plans_of(stage, cells_of(stage), tree) for stage in stages]
    for stage, planned in zip(stages, plans, strict=True):
        if _refused_as_changed(queued_cells(stage, planned)):
            raise Refusal(f"The runs in {stage.output_dir} are not those of {file}.")


def plan(file: Path, pilot: Path | None, items: int | None, difference: float | None, outcome: str | None) -> int:
    """Which differences the sweep can detect, by the cells of ``pilot`` or its own; arguments as in its help."""
    from evenkeel.trainer.lab.reports.outcomes import OUTCOMES
    from evenkeel.trainer.lab.sweeps.pilots import read_pilot
    from evenkeel.trainer.lab.sweeps.planning import plan_sentences, plan_table

    sweep, _ = load_sweep(file)
    advice = (
        f"Run two or three cells by `evenkeel sweep cell {file} NAME`, or name an earlier sweep's directory by --pilot."
    )
    if (name := outcome or sweep.outcomes[0]) not in OUTCOMES:
        listed = f"Outcomes: {', '.join(OUTCOMES)}."
        raise Refusal(f"There is no outcome {name}. {suggest(name, OUTCOMES, listed)}")
    found = read_pilot(pilot or Path(sweep.output_dir), advice, OUTCOMES[name])
    if items and not OUTCOMES[name].by_item:
        raise Refusal(f"{name} is one number a run, and has no items. Leave out --items.")
    asked = (sweep, found, items or found.num_items, difference)
    print("\n".join(plan_sentences(*asked)))
    print_table(plan_table(*asked))
    return 0


def status(file: Path) -> int:
    """The table of all cells."""
    sweep, _ = load_sweep(file)
    tuning = Path(sweep.output_dir) / "tuning"
    if sweep.tune and (tuning / "sweep.json").exists() and not (Path(sweep.output_dir) / "sweep.json").exists():
        root = tuning  # the confirmation's settings are not known yet
    else:
        root = _started(file)
    print_table(status_table(root))
    return 0


def _started(file: Path, parents: Sequence[str] = ()) -> Path:
    sweep, _ = load_sweep(file, parents)
    root = Path(sweep.output_dir)
    if not (root / "sweep.json").exists():
        raise Refusal(f"The sweep of {file} has not been started: there is no {root / 'sweep.json'}.")
    return root


def _queue(sweep: Sweep, plans: Sequence[Plan], root: Path, forks: Forks) -> Queue:
    if isinstance(sweep.executor, SlurmExecution):
        return SlurmQueue(root / "submitit", sweep.executor)
    use_cpu = all(plan.config.trl.get("use_cpu", False) for plan in plans)
    return local_queue(root / "submitit", sweep.executor, use_cpu, processes_of(sweep), forks)


def _refused_as_changed(cells: Sequence[QueuedCell]) -> list[QueuedCell]:
    """Cells that were started under other settings, which are not run; prints the differences."""
    refused = []
    for cell in cells:
        if differences := changed_settings(cell):
            refused.append(cell)
            lines = "\n".join(f"  {line}" for line in differences)
            print(f"{cell.name} was started with other settings and is not run:\n{lines}")
            print(f"  Undo the change, or move {cell.directory.path} away to run the cell again.\n")
    return refused
