"""Every distinct merged file of a sweep's cells, checked as `evenkeel check` does, before the first cell is started."""

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenkeel.errors import COMMAND_LINE, Problem, Refusal
from evenkeel.trainer.lab.reports.outcomes import KL, KL_DEAD, OUTCOMES, Outcome
from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory
from evenkeel.trainer.lab.sweeps.cells import Cell, cells_of
from evenkeel.trainer.lab.sweeps.fairness import check_fair
from evenkeel.trainer.lab.sweeps.loading import located_in_sweep
from evenkeel.trainer.lab.sweeps.plans import Plan, plans_of, processes_of
from evenkeel.trainer.lab.sweeps.schema import Sweep
from evenkeel.trainer.run.check.check import checked
from evenkeel.trainer.run.check.context import first_of
from evenkeel.trainer.run.config.yaml_document import Node


def checked_plans(tree: Node, *stages: Sweep) -> list[list[Plan]]:
    """The cells of each stage, under the sweep's variables.

    Warnings are printed. Cells of several seeds, and equal variants, are checked once; finished cells not at all.

    Raises:
        Refusal: variants that cannot be compared; a setting, model, rows or parts with which a cell would be refused.
    """
    with environment_of_cells(stages[0].environment):
        plans = [plans_of(sweep, cells_of(sweep), tree) for sweep in stages]
        for sweep, each in zip(stages, plans, strict=True):
            check_fair(sweep, each, tree)
            check_outcomes(sweep, each, tree)
        by_file: dict[str, dict[str, None]] = {}
        for plan in (plan for each in plans for plan in each):
            by_file.setdefault(plan.merged, {})[plan.cell.family] = None
        for equal in dict.fromkeys(tuple(each) for each in by_file.values() if len(each) > 1):  # A with A, on purpose?
            print(f"warning: {' and '.join(equal)} have equal settings, so their runs of a seed are equal.", flush=True)
        found = _problems(stages, plans, tree)
    families = {*stages[0].variants}
    shown: dict[str, list[str]] = {"error": [], "warning": [], "note": []}
    for (severity, text), names in found.items():
        shown[severity].append(text if names == families else f"{first_of(sorted(names))}: {text}")
    if shown["error"]:
        raise Refusal("\n\n".join(["No cell was started.", *shown["error"]]), code="check")
    for text in shown["warning"]:
        print(f"warning: {text}", flush=True)
    return plans


@contextmanager
def environment_of_cells(variables: Mapping[str, str]) -> Iterator[None]:
    """Set ``variables`` in this process's environment, as in that of the cells."""
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)


def _problems(stages: Sequence[Sweep], plans: Sequence[Sequence[Plan]], tree: Node) -> dict[tuple[str, str], set[str]]:
    """(severity, sentence) → the variants that it applies to."""
    known: dict[str, Any] = {}
    found: dict[tuple[str, str], set[str]] = {}
    for sweep, each in zip(stages, plans, strict=True):
        root = Path(sweep.output_dir).absolute()
        waiting = {plan.merged: plan for plan in each if not CellDirectory(root / plan.cell.name).summary()}
        for plan in waiting.values():
            # `plans_of` has checked the checkpoint to branch from; checking it again would hash it for each cell
            own = [override for override in plan.overrides if not override.startswith("branch_of=")]
            own.append(f"output_dir={root}")
            for problem in checked(sweep.config, own, processes=processes_of(sweep), known=known).problems:
                text = str(_placed(problem, plan.cell, tree))
                found.setdefault((problem.severity, text), set()).add(plan.cell.family)
    return found


def check_outcomes(sweep: Sweep, plans: Sequence[Plan], tree: Node) -> None:
    """Refuse outcomes of which cells would not record enough, as far as their files tell."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, plan in itertools.product(sweep.outcomes, plans):
        if lacking := ", ".join(_lacking(OUTCOMES[name], plan)):
            found.setdefault((name, lacking), []).append(plan.cell.variant)
    origin = (tree.child("outcomes") or tree).origin
    problems = []
    for (outcome, lacking), variants in found.items():
        runs, needs = first_of([*dict.fromkeys(variants)]), OUTCOMES[outcome].needs
        what = f"names {outcome}, which runs of {runs} will not have: it takes {needs}."
        instead = f"Write {lacking} in the run file."
        problems.append(Problem(("outcomes",), what, instead, origin, code="unmeasured"))
    if problems:
        raise Refusal(problems=problems)


def _lacking(outcome: Outcome, plan: Plan) -> Iterator[str]:
    """Settings that the outcome takes and the cell has not."""
    config, steps = plan.config, plan.budget.optimizer_steps
    evaluation, every = config.evaluation, config.evaluation.every_steps
    if max(each.samples for each in evaluation.decodings) < outcome.samples:
        yield "evaluation.samples: 8"
    if outcome.start and (config.branch_of or not evaluation.before):
        yield "evaluation.before: true (and no branch)"
    later = 1.0
    if every:
        later = math.ceil(steps / every) if steps else math.inf
    if evaluation.before + later < outcome.evaluations:
        yield "a smaller evaluation.every_steps"
    moved = config.trl.get("sync_ref_model")
    if outcome.metric in (KL, KL_DEAD) and (moved or not config.trl.get("beta")):
        yield "trl.beta: 1e-12 without sync_ref_model (it logs kl, and trains as without)"


def _placed(problem: Problem, cell: Cell, tree: Node) -> Problem:
    """A problem with an override of a cell, moved to the line of the sweep's file that sets it."""
    if problem.origin != COMMAND_LINE:
        return problem
    named = [key for key in cell.settings if key in problem.what or f"{key}.".startswith(f"{problem.key}.")]
    path = tuple(named[0].split(".")) if named and problem.key not in cell.settings else problem.path
    return located_in_sweep(replace(problem, path=path), cell, tree)
