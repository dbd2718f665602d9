"""The tables that sources name: files, folders, hub ids, and generators."""

import inspect
import json
import os
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal, suggest
from evenkeel.rewards.registry import Kind
from evenkeel.trainer.run.config import Source, local_path
from evenkeel.trainer.run.record.files import files_fault

Generator = Callable[..., list[dict[str, Any]]]
Table = Mapping[str, Sequence[Any]]

_FORMATS = (".parquet", ".json", ".jsonl", ".csv")

_MOST_ROWS_NAMED = 10
SECONDS_TO_ANSWER = 2.0


def rows_named(indices: Sequence[int]) -> str:
    """The first of these rows, and how many more."""
    named = ", ".join(map(str, indices[:_MOST_ROWS_NAMED]))
    more = f" and {len(indices) - _MOST_ROWS_NAMED} more" if len(indices) > _MOST_ROWS_NAMED else ""
    return f"row{'s' if len(indices) > 1 else ''} {named}{more} (counted from 0)"


def table_of(source: Source, generators: Mapping[str, Generator], base_dir: Path) -> Table:
    """All columns of a source, its first ``max_rows`` rows.

    Raises:
        Refusal: it is not there, cannot be read, or has no rows.
    """
    table = _generated(source, generators) if source.generator is not None else _stored(source, base_dir)
    if source.max_rows is not None:
        table = {name: values[: source.max_rows] for name, values in table.items()}
    if not any(table.values()):
        raise Refusal(f"{label_of(source)} has no rows.")
    return table


def label_of(source: Source) -> str:
    """The name of a source in messages."""
    if source.path is not None:
        return source.path
    name = source.generator["name"] if isinstance(source.generator, dict) else source.generator
    return f"the generator {name}"


def generator_kind(generators: Mapping[str, Generator]) -> Kind:
    """Where a generator is found by its name."""
    return Kind("generator", lambda: generators)


def _generated(source: Source, generators: Mapping[str, Generator]) -> Table:
    kind, label = generator_kind(generators), label_of(source)
    found = kind.find(source.generator)
    kind.check_returned(found, found.target, _is_rows, "def rows(*, …) -> list[dict[str, Any]]")
    options = kind.checked_options(found, inspect.signature(found.target).parameters.values(), found.target)
    try:
        return _columns(list(found.target(**options)))
    except Exception as error:
        raise Refusal(f"{label} raised {type(error).__name__}: {error}") from error


def _columns(rows: Sequence[Any]) -> Table:
    if others := [place for place, row in enumerate(rows) if not isinstance(row, Mapping)]:
        raise ValueError(f"{rows_named(others)} is no mapping: {rows[others[0]]!r:.80}")
    return {str(name): [row.get(name) for row in rows] for name in dict.fromkeys(chain.from_iterable(rows))}


def _is_rows(annotation: Any) -> bool:
    kinds = [typing.get_origin(each) or each for each in (annotation, *typing.get_args(annotation))]
    return kinds[0] is list and len(kinds) == 2 and isinstance(kinds[1], type) and issubclass(kinds[1], Mapping)


def _stored(source: Source, base_dir: Path) -> Table:
    from datasets import load_dataset, load_from_disk
    from datasets.exceptions import DatasetsError

    path = source.path or ""
    found = local_path(path, base_dir, Path())
    file = found if found is not None and found.is_file() else None
    if found is None and _looks_local(path, base_dir):
        given = Path(path).expanduser()
        folders = dict.fromkeys((given.parent, (base_dir / given).parent))
        names = [each.name for folder in folders if folder.is_dir() for each in folder.iterdir()]
        hint = suggest(given.name, names, "Check the path.")
        raise Refusal(f"there is no file or folder {path}, here or in {base_dir}. {hint}")
    if found is not None and (fault := files_fault(found)):
        raise Refusal(f"{fault}. Name a file with rows.")
    if file is not None:
        if file.suffix not in _FORMATS:
            raise Refusal(f"{file} is not a file of a known kind ({', '.join(_FORMATS)}).")
        if source.split not in (None, "train"):
            raise Refusal(f"{path} has no split {source.split!r}. Leave it out; max_rows takes its first rows.")
    if found is None and source.split is None:
        raise Refusal(f"{path} is taken for a hub id. Write `split: train` or `split: test`.")
    try:
        if found is None:
            use_offline_mode()
            dataset = load_dataset(path, source.config_name, split=source.split)
        elif file is None:
            dataset = _split_of(load_from_disk(str(found)), source)
        elif file.suffix == ".parquet":
            dataset = load_dataset("parquet", data_files=str(file), split="train")
        elif file.suffix == ".csv":
            return _csv_columns(file)
        else:
            return _columns(_json_rows(file.read_text("utf-8-sig")))
    except Refusal:
        raise
    except (DatasetsError, OSError, ValueError) as error:
        raise Refusal(f"{path} cannot be loaded: {_reason(error)} Check its name, config_name and split.") from error
    return {name: dataset[name] for name in dataset.column_names}


def _json_rows(text: str) -> list[Any]:
    """The rows of a JSON text: a list, or one after another; columns of a row that is a list are numbered from 0.

    The library would make dates and floats of some values.
    """
    rows: list[Any] = []
    text, end = text.rstrip(), 0
    decoder, visible = json.JSONDecoder(object_pairs_hook=_once), re.compile(r"\S")
    while found := visible.search(text, end):
        try:
            row, end = decoder.raw_decode(text, found.start())
        except RecursionError:
            raise json.JSONDecodeError("Nested too deep", text, found.start()) from None
        rows.append(row)
    if len(rows) == 1 and isinstance(rows[0], list):
        rows = rows[0]
    return [dict(enumerate(row)) if isinstance(row, list) else row for row in rows]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError(f"a key twice in {pairs!r:.80}")
    return found


def _csv_columns(file: Path) -> Table:
    """Numbers where pandas writes all of a column again as they are there; else texts, as of 007 and 1.50."""
    import pandas

    read = pandas.read_csv(file, na_filter=False)
    if not isinstance(read.index, pandas.RangeIndex):
        raise ValueError("rows have more cells than the header. Quote commas.")
    columns = {}
    for name, texts in pandas.read_csv(file, dtype=str, na_filter=False).items():
        column = read[name]
        is_same = column.dtype.kind in "biuf" and column.astype(str).equals(texts)
        columns[str(name)] = column.tolist() if is_same else [text or None for text in texts]
    return columns


def _looks_local(path: str, base_dir: Path) -> bool:
    """A path that does not exist is hardly a hub id, which is ``name`` or ``owner/name``."""
    given = Path(path).expanduser()
    within = len(given.parts) > 1 and any((folder / given.parent).is_dir() for folder in (Path(), base_dir))
    return bool(given.suffix in _FORMATS or path.startswith((".", "/", "~")) or len(given.parts) > 2 or within)


def _split_of(saved: Any, source: Source) -> Any:
    splits = [*saved] if isinstance(saved, dict) else [None]
    if source.split not in splits:
        named = ", ".join(split for split in splits if split) or "none"
        raise Refusal(f"{source.path} has no split {source.split!r}. Its splits: {named}.")
    return saved[source.split] if isinstance(saved, dict) else saved


def _reason(error: BaseException) -> str:
    if error.__cause__ is not None and type(error).__module__.startswith("datasets"):
        error = error.__cause__
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{lines[0].rstrip('.!')}."


@cache
def use_offline_mode() -> bool:
    """Switch to offline mode if the hub does not answer, asked once; returns whether it is on.

    huggingface_hub tries each file of an id again for some 25 seconds, whatever is set. Offline, a wrong id is refused
    at once, and one in the cache loads. Nothing is asked if the mode is on already.
    """
    import httpx
    from huggingface_hub import constants

    if constants.is_offline_mode():
        return True
    try:
        httpx.head(constants.ENDPOINT, timeout=SECONDS_TO_ANSWER)
    except (httpx.HTTPError, OSError):
        import datasets

        constants.HF_HUB_OFFLINE = True
        datasets.config.HF_HUB_OFFLINE = True
        os.environ["HF_HUB_OFFLINE"] = "1"  # for what this process starts
        return True
    return False
