"""Run the cells of a sweep, watch them, report on them: variants × grid × seeds from one YAML file.

    python scripts/sweep.py run configs/sweeps/quickstart.yaml
    python scripts/sweep.py status configs/sweeps/quickstart.yaml
    python scripts/sweep.py report configs/sweeps/quickstart.yaml
    python scripts/sweep.py cell configs/sweeps/quickstart.yaml variant=lopti seed=3
    python scripts/sweep.py export configs/sweeps/quickstart.yaml > wandb.yaml     # for wandb sweep wandb.yaml

Killed and started again, `run` goes on: finished cells stay, half-done ones resume from their checkpoint.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from rewards import VerifierError, build_verifier
from trainer.algorithms.registry import PartError
from trainer.comparison.sweeps.attempt import rendezvous
from trainer.comparison.sweeps.cells import Cell, cells_of
from trainer.comparison.sweeps.fairness import check_fair
from trainer.comparison.sweeps.loading import load_sweep
from trainer.comparison.sweeps.plans import Plan, plans_of, processes_of
from trainer.comparison.sweeps.queues import Queue, QueueError, SlurmQueue, local_queue
from trainer.comparison.sweeps.runner import SweepError, SweepRunner, check_unlocked, locked_directory, write_sweep
from trainer.comparison.sweeps.schema import SlurmExecution, Sweep
from trainer.comparison.sweeps.starting import QueuedCell, changed_settings, next_attempt, queued_cells
from trainer.comparison.sweeps.status import budget_table, print_table, status_table, watch
from trainer.comparison.sweeps.wandb_sweep import wandb_sweep
from trainer.run.config import ConfigError
from trainer.run.config.yaml_document import Node
from trainer.step.compatibility import PreflightError

TRAIN = Path(__file__).with_name("train.py")
REFUSALS = (ConfigError, PartError, PreflightError, QueueError, SweepError, VerifierError)

COMMANDS = {
    "run": "run all cells, or go on with them",
    "status": "show how far they are",
    "report": "compare the finished cells: verdict, intervals, curves",
    "cell": "run one cell in this terminal",
    "export": "print the sweep as W&B's agents want it",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 all cells finished, 1 some failed, 2 refused, 130 stopped on request."""
    arguments = parse_arguments(argv)
    try:
        if arguments.command == "run":
            return run(arguments.file)
        if arguments.command == "cell":
            return run_cell(arguments.file, arguments.choice)
        if arguments.command == "report":
            return report(arguments.file)
        if arguments.command == "export":
            return export(arguments.file)
        return status(arguments.file, arguments.once)
    except REFUSALS as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, meaning in COMMANDS.items():
        command = commands.add_parser(name, help=meaning, allow_abbrev=False)
        command.add_argument("file", type=Path, help="YAML file of the sweep")
        if name == "status":
            command.add_argument("--once", action="store_true", help="print the table and end")
        if name == "cell":
            command.add_argument("choice", nargs=2, metavar="key=value", help="variant=… and seed=…, in any order")
    return parser.parse_args(argv)


def run(file: Path) -> int:
    """Check every cell, run them, and end with the table."""
    sweep, tree = load_sweep(file)
    check_unlocked(sweep)
    plans = checked_plans(sweep, tree)
    with locked_directory(sweep) as root:
        entries = queued_cells(sweep, plans)
        refused = refuse_changed(entries)
        write_sweep(sweep, plans, root, file)
        print_table(budget_table(sweep, plans))
        runner = SweepRunner(
            sweep,
            [entry for entry in entries if entry not in refused],
            queue_of(sweep, plans, root),
            TRAIN.absolute(),
            say=lambda line: print(line, flush=True),
        )
        completed = runner.run()
    print_table(status_table(root))
    for entry in entries:
        if entry.directory.state() != "failed":
            continue
        if refusal := entry.directory.attempts()[-1].get("refused"):
            print(f"\n{entry.name} was not started: {refusal}")
        else:
            print(f"\n{entry.name} failed; the end of {entry.directory.log}:\n{entry.directory.log_end()}")
    if not completed:
        print(f"Stopped. To go on:  python scripts/sweep.py run {file}")
        return 130
    return int(any(not entry.directory.summary() for entry in entries) or bool(refused))


def run_cell(file: Path, choice: Sequence[str]) -> int:
    """Run one cell here, as `run` would; a W&B agent calls this and names the W&B run itself."""
    sweep, tree = load_sweep(file)
    cell = chosen_cell(cells_of(sweep), choice)
    plans = checked_plans(sweep, tree)
    (entry,) = (entry for entry in queued_cells(sweep, plans) if entry.name == cell.name)
    if entry.directory.is_running():
        raise SweepError(f"{entry.name} is running; follow it in {entry.directory.log}.")
    if refuse_changed([entry]):
        return 2
    if not entry.directory.summary():
        write_sweep(sweep, plans, entry.directory.path.parent, file)
        attempt = next_attempt(sweep, entry, TRAIN.absolute())
        if "WANDB_SWEEP_ID" in os.environ:
            for name in ("WANDB_RUN_ID", "WANDB_RESUME"):
                attempt.environment.pop(name)
        print(f"{entry.name} runs; its output is in {entry.directory.log}", flush=True)
        attempt.run(0, rendezvous(0, ["localhost"], "0"), in_terminal=True)
    print_table(status_table(entry.directory.path.parent, only=entry.name))
    return {"finished": 0, "stopped": 130}.get(entry.directory.state(), 1)


def chosen_cell(cells: Sequence[Cell], choice: Sequence[str]) -> Cell:
    """The cell that ``variant=…`` and ``seed=…`` name."""
    wanted = {key: value for key, _, value in (part.partition("=") for part in choice)}
    for cell in cells:
        if wanted == {"variant": cell.variant, "seed": str(cell.seed)}:
            return cell
    variants = ", ".join(dict.fromkeys(cell.variant for cell in cells))
    seeds = ", ".join(dict.fromkeys(str(cell.seed) for cell in cells))
    raise SweepError(f"No cell is {' '.join(choice)}. Write variant=… (one of {variants}) and seed=… (one of {seeds}).")


def export(file: Path) -> int:
    """The sweep as W&B's agents want it, on standard output."""
    with redirect_stdout(sys.stderr):  # transformers prints while it is imported, and the output is a file
        sweep, tree = load_sweep(file)
        checked_plans(sweep, tree)
    print(wandb_sweep(sweep, cells_of(sweep), file), end="")
    return 0


def checked_plans(sweep: Sweep, tree: Node) -> list[Plan]:
    """All cells, after everything that can be found wrong before a model is loaded."""
    plans = plans_of(sweep, cells_of(sweep), tree)
    check_fair(sweep, plans, tree)
    for plan in plans:
        for reward in plan.config.rewards:
            build_verifier(reward.verifier)
    return plans


def refuse_changed(entries: Sequence[QueuedCell]) -> list[QueuedCell]:
    """Cells whose files were made under other settings: they are neither repeated nor mixed with new ones."""
    refused = []
    for entry in entries:
        if differences := changed_settings(entry):
            refused.append(entry)
            lines = "\n".join(f"  {line}" for line in differences)
            print(f"{entry.name} was started with other settings and is left as it is:\n{lines}")
            print(f"  Take the change back, or move {entry.directory.path} away to run it anew.\n")
    return refused


def queue_of(sweep: Sweep, plans: Sequence[Plan], root: Path) -> Queue:
    """Where the cells run."""
    if isinstance(sweep.executor, SlurmExecution):
        return SlurmQueue(root / "submitit", sweep.executor)
    use_cpu = all(plan.config.trl.get("use_cpu", False) for plan in plans)
    return local_queue(root / "submitit", sweep.executor, use_cpu, processes_of(sweep))


def report(file: Path) -> int:
    """report.html and report.md in the sweep's directory."""
    from trainer.comparison.reports import ReportError, write_report
    from trainer.statistics import StatisticsError

    try:
        written, page = write_report(started(file))
    except (ReportError, StatisticsError) as error:
        raise SweepError(str(error)) from error
    print(f"{written.headline}\n{page}")
    return 0


def status(file: Path, once: bool) -> int:
    """The table of all cells; it moves in a terminal."""
    root = started(file)
    if once or not sys.stdout.isatty():
        print_table(status_table(root))
    else:
        watch(root)
    return 0


def started(file: Path) -> Path:
    """The sweep's directory, in which something has been run."""
    sweep, _ = load_sweep(file)
    root = Path(sweep.output_dir)
    if not (root / "sweep.json").exists():
        raise SweepError(f"The sweep of {file} has not been started: there is no {root / 'sweep.json'}.")
    return root


if __name__ == "__main__":
    sys.exit(main())
