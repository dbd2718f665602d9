"""A run's rollouts from its directory, one rollout batch in memory at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rewards.registry import Refusal
from trainer.run.rollout_files import ALWAYS, FOLDER, fault_of_columns, read_every, written_files


class RolloutsError(Refusal):
    """A directory without rollouts to read."""


@dataclass(frozen=True)
class RecordedRollouts:
    """The rollouts that a run kept; see `trainer.run.rollout_files.RolloutFiles`.

    Attributes:
        first_step, last_step: only batches that were generated at these optimizer steps; ``None`` = all.
    """

    run: Path
    first_step: int | None = None
    last_step: int | None = None

    @cached_property
    def files(self) -> dict[int, list[Path]]:
        """Number of the rollout batch → its files, one a rank.

        Raises:
            RolloutsError: there are none.
        """
        folder = self.run / FOLDER
        found: dict[int, list[Path]] = {}
        for number, _, path in written_files(folder) if folder.is_dir() else ():
            if self._is_asked_for(path):
                found.setdefault(number, []).append(path)
        if found:
            return found
        if folder.is_dir() and any(written_files(folder)):
            raise RolloutsError(
                f"{folder} holds no rollouts of steps {self.first_step} to {self.last_step}. Ask for other steps."
            )
        raise RolloutsError(
            f"{self.run} holds no rollouts: {FOLDER}/batch-*.parquet are written by runs with logging.rollouts: all or "
            "a number. Name the directory of such a run, or start one."
        )

    @property
    def every_batch(self) -> int:
        """Of how many rollout batches one was kept."""
        return read_every(self.run / FOLDER)

    def batches(self, columns: Sequence[str] | None = None, numbers: Sequence[int] | None = None) -> Iterator[Any]:
        """A pyarrow table for each rollout batch, in order: the rows of all ranks, by ``row``.

        Args:
            columns: the only ones that are read, as far as they are there.
            numbers: the only batches.
        """
        import pyarrow

        for number, paths in self.files.items():
            if numbers is None or number in numbers:
                parts = [_read(path, columns) for path in paths]
                table = parts[0] if len(parts) == 1 else pyarrow.concat_tables(parts, promote_options="default")
                yield table if len(parts) == 1 else table.sort_by("row")

    def _is_asked_for(self, path: Path) -> bool:
        if self.first_step is None and self.last_step is None:
            return True
        steps = _read(path, ["step"]).column("step")
        step = steps[0].as_py() if len(steps) else -1  # a rank may hold no row of the groups that were kept
        return (self.first_step or 0) <= step <= (step if self.last_step is None else self.last_step)


def _read(path: Path, columns: Sequence[str] | None) -> Any:
    from pyarrow import parquet

    again = "Bring it back as it was written, or delete it: a page is then made of the other rollout batches."
    try:
        file = parquet.ParquetFile(path)
        there = file.schema_arrow.names
        table = file.read(columns=None if columns is None else [name for name in columns if name in there])
    except (OSError, ValueError) as error:  # of Arrow: no parquet file, or one that ends too early
        raise RolloutsError(f"{path} is damaged: {str(error).splitlines()[0]} {again}") from error
    if fault := fault_of_columns(table, ALWAYS if columns is None else [name for name in columns if name in ALWAYS]):
        raise RolloutsError(f"{path} is damaged: {fault}. {again}")
    return table
