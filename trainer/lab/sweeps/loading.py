"""From a sweep's YAML file to a ``Sweep``, or to one error that names everything wrong with it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evenkeel.errors import COMMAND_LINE, Problem, Refusal
from evenkeel.trainer.lab.sweeps.cells import Cell
from evenkeel.trainer.lab.sweeps.schema import Sweep
from evenkeel.trainer.run.branch import checkpoint_at
from evenkeel.trainer.run.config.layers import extended
from evenkeel.trainer.run.config.loading import local_path
from evenkeel.trainer.run.config.section import expanded
from evenkeel.trainer.run.config.shipped import maker_of
from evenkeel.trainer.run.config.wording import problems_of
from evenkeel.trainer.run.config.yaml_document import Node, read_file
from evenkeel.trainer.run.record.files import CONFIG
from evenkeel.trainer.run.record.run_record import RunRecord


def load_sweep(path: str | Path, parents: Sequence[str] = ()) -> tuple[Sweep, Node]:
    """The sweep that a file describes, and the tree that knows where each value was written.

    Keys that it lacks come from the one file that it ``extends``, as in a run file. ``name`` is the file's stem and
    ``output_dir`` is ``runs/sweeps/<name>`` where the file gives none; ``config`` becomes absolute; an empty variant
    (``grpo:``) changes nothing. With ``from``, or ``parents`` in its place, ``config`` and ``seeds`` are those of the
    parents, and ``from`` lists the absolute paths of their checkpoints.

    Raises:
        Refusal: everything that is wrong, each with its line.
    """
    path = Path(path)
    tree = extended(read_file(path))
    data = tree.plain()
    data.setdefault("name", path.stem)
    data.setdefault("output_dir", f"runs/sweeps/{data['name']}")
    if isinstance(data["output_dir"], str):
        data["output_dir"] = expanded(data["output_dir"])
    if isinstance(data.get("variants"), dict):
        data["variants"] = {name: {} if changes is None else changes for name, changes in data["variants"].items()}
    if parents:
        data["from"] = [*parents]
    problems = _from_parents(data, tree) if "from" in data else []
    if isinstance(named := data.get("config"), str) and "config" in tree.value:
        data["config"] = str(local_path(named, tree.value["config"].origin.folder, Path()) or named)
    try:
        sweep = Sweep.model_validate(data)
    except ValidationError as error:
        of_parents = ("config", "seeds") if "from" in data else ()
        problems += [found for found in problems_of(error, tree, Sweep) if found.key not in of_parents]
    if problems:
        raise Refusal(problems=sorted(problems, key=lambda problem: (problem.origin and problem.origin.line) or 0))
    return sweep, tree


def _from_parents(data: dict[str, Any], tree: Node) -> list[Problem]:
    """Problems with the runs that the cells start from; sets ``config`` and ``seeds`` of ``data`` from these runs."""

    def refused(key: str, code: str, what: str, instead: str) -> list[Problem]:
        node = tree.child(key) or tree
        return [Problem((key,), what, instead, node.origin, code=code)]

    for key in ("config", "seeds"):
        if key in data:
            return refused(key, "decided-by-parents", "is set by the runs that the cells start from.", "Leave it out.")
    named = [data["from"]] if isinstance(data["from"], str) else data["from"]
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        return []
    checkpoints: dict[int, Path] = {}
    for each in named:
        try:
            checkpoint = checkpoint_at(each)
            seed = RunRecord(checkpoint.parent).config.run_seed
        except Refusal as refusal:
            command = maker_of(each)
            instead = f"Make them first: {command}" if command else "Name checkpoints of finished runs."
            return refused("from", refusal.code or "no-parent", f"names {each}: {refusal}", instead)
        if seed in checkpoints:
            what = f"names two runs of seed {seed}, and cells are paired by their seeds."
            return refused("from", "seed-twice", what, "Name runs of different seeds.")
        checkpoints[seed] = checkpoint
    if checkpoints:
        data["config"] = str(next(iter(checkpoints.values())).parent / CONFIG)
        data |= {"from": [str(path) for path in checkpoints.values()], "seeds": [*checkpoints]}
    return []


def located_in_sweep(problem: Problem, cell: Cell, tree: Node) -> Problem:
    """A problem with an override of a cell, at the line of the sweep's file that writes it."""
    if problem.origin not in (None, COMMAND_LINE):
        return problem
    for section in (("variants", cell.family), ("grid",), ("tune", "grid"), ("tune", "held_out")):
        for key, child in _entries(tree, section).items():
            if f"{problem.key}.".startswith(f"{key}."):
                return replace(problem, path=(*section, key, *problem.path[key.count(".") + 1 :]), origin=child.origin)
    variant = _entries(tree, ("variants",))[cell.family]
    return replace(problem, path=("variants", cell.family, problem.key), origin=variant.origin)


def _entries(tree: Node, section: tuple[str, ...]) -> dict[str, Node]:
    node = tree.at(section)
    return node.value if node and isinstance(node.value, dict) else {}
