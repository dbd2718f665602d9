"""Group-sequential sweeps: cells after a look wait for it; if it ends their comparison, they are never started.

`reports.looks` and `statistics.looks` decide; this module says which cells may start. For a variant these are the cells
of the seeds up to its next look, for the baseline those that some open comparison needs. The number and places of the
looks are fixed before the first result: chosen after it, they would not keep false verdicts at 5 %.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from pydantic_core import from_json, to_json

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.reports.comparison import datasets_of, judged_runs
from evenkeel.trainer.lab.reports.looks import LookPlan, looks_taken
from evenkeel.trainer.lab.reports.run_files import LOOKS, RecordedRuns, ReportError, read_json, read_runs
from evenkeel.trainer.lab.statistics import Look
from evenkeel.trainer.lab.sweeps.cells import Cell
from evenkeel.trainer.lab.sweeps.schema import Sweep
from evenkeel.trainer.run.record.files import SUMMARY, write_json

Turn = Literal["start", "wait", "never"]


class LookGate:
    """Says of each cell whether it may start, from the looks that the finished runs allow.

    Args:
        root: the sweep's directory, with its ``sweep.json``.
        say: is called with a line for each look that was taken.
    """

    def __init__(self, sweep: Sweep, cells: Sequence[Cell], root: Path, say: Callable[[str], None]) -> None:
        assert sweep.stopping is not None
        self.plan = LookPlan(sweep.stopping.looks, sweep.stopping.futility, sweep.seeds)
        self.cells = cells
        self.root = root
        self.say = say
        self.looks: dict[str, list[Look]] = {cell.variant: [] for cell in cells if cell.variant != cell.baseline}

    def update(self, pending: Collection[str]) -> None:
        """Take the looks that have become possible, and write ``looks.json``.

        Args:
            pending: names of the cells that run or will; those neither pending nor finished have failed.
        """
        runs = self._finished()
        if runs is None:
            return
        given_up = self._given_up(runs, pending)
        runs = replace(runs, failed=frozenset((cell.variant, cell.seed) for cell in given_up))
        dataset = next(iter(datasets_of(runs)), None)
        if dataset is None:
            return
        judged = judged_runs(runs, dataset)
        for variant, before in self.looks.items():
            looks = looks_taken(self.plan, runs, judged, dataset, variant)
            for look in looks[len(before) :]:
                self.say(self._sentence(variant, look))
            self.looks[variant] = looks
        record = {variant: [asdict(look) for look in looks] for variant, looks in self.looks.items()}
        found = {"looks": record, "not_needed": self.not_needed(), "failed": [cell.name for cell in given_up]}
        write_json(self.root / LOOKS, from_json(to_json(found, inf_nan_mode="null")))

    def turn(self, cell: Cell) -> Turn:
        """Whether a cell may start now, later or never."""
        position = self.plan.seeds.index(cell.seed)
        if cell.variant != cell.baseline:
            return _turn(position, *self._open(cell.variant))
        against = {each.variant for each in self.cells if each.baseline == cell.variant} & set(self.looks)
        turns = [_turn(position, *self._open(variant)) for variant in against]
        return next((turn for turn in ("start", "wait") if turn in turns), "never" if turns else "start")

    def not_needed(self) -> list[str]:
        """Names of the cells that are never started."""
        return [
            cell.name
            for cell in self.cells
            if self.turn(cell) == "never" and not (self.root / cell.name / "run" / SUMMARY).exists()
        ]

    def why_blocked(self, waiting: Sequence[Cell]) -> str:
        """Why the look that the ``waiting`` cells need can never be taken, and what to do; for when nothing runs."""
        number = min(opened for opened, ended in map(self._open, self.looks) if not ended)
        runs = self._finished()
        failed = [cell.name for cell in self._given_up(runs, {cell.name for cell in waiting})]
        seen = {(run.variant, run.seed): bool(run.held_out()) for run in runs.all} if runs else {}
        unseen = [cell.name for cell in self.cells if seen.get((cell.variant, cell.seed)) is False]
        lines = [f"The look at {number} seeds cannot be taken, so {len(waiting)} cells that wait for it are not run."]
        if failed:
            lines.append(
                f"Failed or not taken by the queue: {', '.join(failed)}. `evenkeel sweep status` names their logs; "
                "fix the cause and start the sweep again: these cells are then run again."
            )
        if unseen:
            lines.append(
                f"Finished without held-out accuracy: {', '.join(unseen)}. Make sure that `data: {{test: …}}` gives "
                "held-out rows, move the directories of these cells away and start the sweep again."
            )
        elif seen:
            lines.append(
                "The finished runs have no held-out set in common on which an answer was judged. Check that the "
                "verifier works and that all variants have the same sets under `data: {test: …}`; then give the sweep "
                "another output_dir."
            )
        return " ".join(lines)

    def _finished(self) -> RecordedRuns | None:
        try:
            return read_runs(self.root)
        except ReportError:  # nothing is finished yet
            return None

    def _given_up(self, runs: RecordedRuns | None, pending: Collection[str]) -> list[Cell]:
        """Cells that should have finished by now and have not."""
        finished = {(run.variant, run.seed) for run in runs.all} if runs else set()
        return [
            cell
            for cell in self.cells
            if cell.name not in pending and (cell.variant, cell.seed) not in finished and self.turn(cell) != "never"
        ]

    def _open(self, variant: str) -> tuple[int, bool]:
        """How many of the first seeds may be run, and whether that is all there will be."""
        looks, numbers = self.looks[variant], self.plan.looks
        if looks and looks[-1].stops:
            return looks[-1].seeds, True
        return numbers[min(len(looks), len(numbers) - 1)], False

    def _sentence(self, variant: str, look: Look) -> str:
        if look.difference is None:
            return f"{variant}: the look at {look.seeds} seeds is skipped: some of its runs have no judged answer"
        seen = f"difference {look.difference.value:+.3f} [{look.difference.low:+.3f}, {look.difference.high:+.3f}]"
        ends = "; its other cells are not started" if look.stops else ""
        return f"{variant}: look at {look.seeds} seeds: {look.outcome}, {seen}{ends}"


def check_looks_unchanged(sweep: Sweep, root: Path) -> None:
    """Refuse other looks or seeds than those that the first results were seen under; ``futility`` may change.

    Raises:
        Refusal: they differ, and some cell is finished.
    """
    before = read_json(root / "sweep.json")
    if not before or not any(root.glob("*/run/summary.json")):
        return
    old, new = before.get("stopping"), sweep.stopping
    if old is None and new is None:
        return
    same_looks = old is not None and new is not None and old["looks"] == new.looks
    if not same_looks or before["seeds"] != sweep.seeds:
        raise Refusal(
            f"This sweep has results with {_planned(old, before['seeds'])}, and the file now says "
            f"{_planned(new and new.model_dump(), sweep.seeds)}. Looks that are chosen after results are known do not "
            "keep false verdicts at 5 %. Undo the change, or give the sweep another output_dir. To continue although "
            "a look found a comparison hopeless, write futility: 0, which is always allowed."
        )


def _planned(stopping: Any, seeds: Sequence[int]) -> str:
    looks = "no looks" if stopping is None else f"looks at {', '.join(map(str, stopping['looks']))} seeds"
    return f"{looks} of seeds {', '.join(map(str, seeds))}"


def _turn(position: int, opened: int, ended: bool) -> Turn:
    if position < opened:
        return "start"
    return "never" if ended else "wait"
