"""From a sweep's YAML file to a ``Sweep``, or to one error that names everything wrong with it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evenkeel.rewards.registry import suggest
from evenkeel.trainer.comparison.sweeps.cells import Cell
from evenkeel.trainer.comparison.sweeps.consistency import inconsistencies
from evenkeel.trainer.comparison.sweeps.schema import SlurmSweep, Sweep
from evenkeel.trainer.run.config.file_kinds import SWEEP, check_kind
from evenkeel.trainer.run.config.layers import extended
from evenkeel.trainer.run.config.loading import local_path
from evenkeel.trainer.run.config.problems import COMMAND_LINE, ConfigError, Problem
from evenkeel.trainer.run.config.section import expanded
from evenkeel.trainer.run.config.wording import problems_of
from evenkeel.trainer.run.config.yaml_document import Node, read_file

_KINDS: dict[str, type[Sweep]] = {"local": Sweep, "slurm": SlurmSweep}


def load_sweep(path: str | Path) -> tuple[Sweep, Node]:
    """The sweep that a file describes, and the tree that knows where each value was written.

    What it does not say is taken from the one file that it ``extends``, as of a run. ``name`` is the file's stem and
    ``output_dir`` is ``runs/sweeps/<name>`` where the file gives none; ``config`` becomes absolute; an empty variant
    (``grpo:``) changes nothing.

    Raises:
        ConfigError: everything that is wrong, each with its line.
    """
    path = Path(path)
    tree = read_file(path)
    check_kind(tree, SWEEP)
    tree = extended(tree)
    model = _KINDS[_kind(tree)]
    data = tree.plain()
    data.setdefault("name", path.stem)
    data.setdefault("output_dir", f"runs/sweeps/{data['name']}")
    if isinstance(data["output_dir"], str):
        data["output_dir"] = expanded(data["output_dir"])
    if isinstance(data.get("variants"), dict):
        data["variants"] = {name: {} if changes is None else changes for name, changes in data["variants"].items()}
    problems = _locate_config(data, tree)
    for found in inconsistencies(data):  # each for itself: a wrong setting of a variant says nothing about its name
        problems += problems_of(ValidationError.from_exception_data("sweep", [found]), tree, model)
    try:
        sweep = model.model_validate(data)
    except ValidationError as error:
        problems += problems_of(error, tree, model)
    if problems:
        raise ConfigError(sorted(problems, key=lambda problem: (problem.origin and problem.origin.line) or 0))
    return sweep, tree


def _kind(tree: Node) -> str:
    executor = tree.child("executor")
    kind = executor.child("kind") if executor else None
    if kind is None or (isinstance(kind.value, str) and kind.value in _KINDS):
        return "local" if kind is None else kind.value
    what = f"is {kind.plain()!r}, and cells are run on this machine or through SLURM."
    instead = suggest(str(kind.plain()), _KINDS, "Write local or slurm.")
    raise ConfigError([Problem("executor.kind", what, instead, kind.origin, code="unknown-executor")])


def _locate_config(data: dict[str, Any], tree: Node) -> list[Problem]:
    named = data.get("config")
    if not isinstance(named, str) or not named:
        return []
    origin = tree.value["config"].origin
    found = local_path(named, origin.folder, Path())
    if found is None or not found.is_file():
        what = f"there is no file {named}, neither from {origin.folder} nor from here."
        return [Problem("config", what, "Name the run file that all cells start from.", origin, code="no-run-file")]
    data["config"] = str(found)
    return []


def located_in_sweep(problem: Problem, cell: Cell, tree: Node) -> Problem:
    """A problem with an override of a cell, at the line of the sweep's file that writes it."""
    if problem.origin not in (None, COMMAND_LINE):
        return problem
    for section in (("variants", cell.family), ("grid",), ("tune", "grid"), ("tune", "held_out")):
        for key, child in _entries(tree, section).items():
            if f"{problem.path}.".startswith(f"{key}."):
                return replace(problem, path=".".join((*section, problem.path)), origin=child.origin)
    variant = _entries(tree, ("variants",))[cell.family]
    return replace(problem, path=f"variants.{cell.family}: {problem.path}", origin=variant.origin)


def _entries(tree: Node, section: tuple[str, ...]) -> dict[str, Node]:
    node: Node | None = tree
    for key in section:
        node = node.child(key) if node else None
    return node.value if node and isinstance(node.value, dict) else {}
