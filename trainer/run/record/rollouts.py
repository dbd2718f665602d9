"""A run's training rollouts on disk: a parquet file for each rollout batch and rank."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.record.files import ROLLOUTS, read_parquet

Columns = dict[str, list[Any]]
_NAME = re.compile(r"batch-(\d+)-rank-(\d+)\.parquet")
_TYPES = {
    "batch": "int32",
    "step": "int32",
    "row": "int32",
    "group": "int32",
    "prompt": "string",
    "prompt_ids": "list of int32",
    "reference": "string",
    "completion": "string",
    "completion_ids": "list of int32",
    "num_tokens": "int32",
    "truncated": "bool",
    "mask": "list of bool",
    "correct": "bool",
    "reward": "float",
    "others": "string",
    "advantage": "float",
    "advantages": "list of float",
    "old_logps": "list of float",
    "entropies": "list of float",
}
"""Column that every file holds → its type. Besides these ``rewards/<function>`` are float, and all others
(``<function>/answer``, ``/reason``) text."""


def rollout_file(folder: Path, number: int, rank: int) -> Path:
    """The file of a rank's rows of rollout batch ``number``."""
    return folder / f"batch-{number:06d}-rank-{rank}.parquet"


def begin_rollouts(folder: Path, number: int, rank: int) -> None:
    """Prepare ``folder`` for batch ``number``: delete what this rank wrote of that batch and later ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for written, by, path in written_files(folder):
        if by == rank and written >= number:
            path.unlink()


def written_files(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """(number of the batch, rank, file) of every whole file, in this order."""
    found = [(match, path) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
    yield from sorted((int(match[1]), int(match[2]), path) for match, path in found)


def write_rollouts(path: Path, columns: Columns) -> None:
    """Write one parquet file with one row group, atomically."""
    import pyarrow
    from pyarrow import parquet

    def storable(value: Any) -> Any:
        """Replace lone surrogates, which JSON data may hold and UTF-8 may not, by escapes."""
        return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value

    arrays = {name: pyarrow.array([*map(storable, values)], type=_type_of(name)) for name, values in columns.items()}
    draft = path.with_name(f".{path.name}.draft")
    try:
        parquet.write_table(pyarrow.table(arrays), draft, compression="zstd")
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _type_of(name: str) -> Any:
    import pyarrow

    written = _TYPES.get(name, "float" if name.startswith("rewards/") else "string")
    inner = written.removeprefix("list of ")
    kind = pyarrow.type_for_alias(inner)
    return kind if inner == written else pyarrow.list_(kind)


@dataclass(frozen=True)
class RecordedRollouts:
    """The rollouts that a run kept, one rollout batch in memory at a time.

    Attributes:
        first_step, last_step: only batches generated for these optimizer steps, from 1; ``None`` = all.
    """

    run: Path
    first_step: int | None = None
    last_step: int | None = None

    @cached_property
    def files(self) -> dict[int, list[Path]]:
        """Number of the rollout batch → its files, one a rank; a `Refusal` where there are none."""
        folder = self.run / ROLLOUTS
        found: dict[int, list[Path]] = {}
        for number, _, path in written_files(folder) if folder.is_dir() else ():
            if self._is_asked_for(path):
                found.setdefault(number, []).append(path)
        if found:
            return found
        steps = "" if not (self.first_step or self.last_step) else f" of steps {self.first_step} to {self.last_step}"
        raise Refusal(f"{folder} has no rollouts{steps}: runs write them with logging.rollouts: all or a number.")

    def batches(self, columns: Sequence[str] | None = None, numbers: Sequence[int] | None = None) -> Iterator[Any]:
        """A pyarrow table for each rollout batch, in order: the rows of all ranks, by ``row``.

        Args:
            columns: read only these, where they exist; ``None`` = all.
            numbers: only these batches; ``None`` = all.
        """
        import pyarrow

        for number, paths in self.files.items():
            if numbers is None or number in numbers:
                parts = [read_parquet(path, columns) for path in paths]
                table = pyarrow.concat_tables(parts, promote_options="default")
                yield table if len(parts) == 1 else table.sort_by("row")

    def _is_asked_for(self, path: Path) -> bool:
        if self.first_step is None and self.last_step is None:
            return True
        steps = read_parquet(path, ["step"]).column("step")
        # a rank may hold no row of the groups that were kept
        step = steps[0].as_py() + 1 if len(steps) else 0
        return (self.first_step or 1) <= step <= (step if self.last_step is None else self.last_step)
