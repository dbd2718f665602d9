"""Rows to train on: sources of the configuration → a dataset with the columns ``prompt``, ``reference`` and ``task``.

``prompt`` is a conversation, a list of ``{role, content}``. ``reference`` is what the verifier is given, exactly as the
source holds it: rows with different keys or types stay different, which an Arrow table alone would not allow.
"""

import difflib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.run.config import Columns, Source, local_path
from trainer.run.prompt_template import filled_prompts, template_columns

if TYPE_CHECKING:
    from datasets import Dataset

Generator = Callable[..., list[dict[str, Any]]]
_Table = Mapping[str, Sequence[Any]]

_FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}
_TEMPLATE_MARKS = ("<|im_start|>", "<|start_header_id|>", "<|begin_of_text|>")
_MOST_ROWS_NAMED = 10


class DataError(ValueError):
    """Rows that cannot be loaded or trained on; the message says what to write instead, ready to print."""


def load_rows(
    source: Source,
    *,
    generators: Mapping[str, Generator],
    system_prompt: str | None,
    base_dir: Path,
    templated: bool = False,
) -> "Dataset":
    """The rows of ``source``, in their order.

    A text prompt becomes one user message; messages stay as they are. ``columns.prompt`` may be text with ``{column}``
    in it (`prompt_template`). ``system_prompt`` is put first. Files are read by their extension; a folder must
    come from ``save_to_disk``; everything else is taken for a hub id. Without ``source.columns`` the columns must
    already be called ``prompt`` and ``reference``. A source with a ``task`` gives its rows that task in a column
    ``task``; ``columns.group`` becomes a text column ``group``.

    Args:
        generators: name → function of the options in ``source.generator`` that returns rows.
        base_dir: where a relative path is looked for when it is not in the current directory.
        templated: take prompts that already carry a chat template, for a use that applies none.

    Raises:
        DataError: a source, column or generator that is not there, no rows, prompts that are empty, already carry a
            chat template or have a system message of their own, or references that a dataset cannot hold.
    """
    return load_mixture(
        [source], generators=generators, system_prompt=system_prompt, base_dir=base_dir, templated=templated
    )


def load_mixture(
    sources: Iterable[Source],
    *,
    generators: Mapping[str, Generator],
    system_prompt: str | None,
    base_dir: Path,
    templated: bool = False,
) -> "Dataset":
    """The rows of all ``sources`` one after another, each as `load_rows` gives them; training shuffles them."""
    columns: dict[str, list[Any]] = {"prompt": [], "reference": [], "task": [], "group": []}
    labels = []
    for source in sources:
        rows = _rows_of(source, generators, system_prompt, base_dir, templated=templated)
        columns["prompt"] += rows["prompt"]
        columns["reference"] += rows["reference"]
        columns["task"] += [source.task] * len(rows["prompt"])
        columns["group"] += rows.get("group", [None] * len(rows["prompt"]))
        labels.append(_label(source))
    for name in ("task", "group"):
        if all(value is None for value in columns[name]):
            del columns[name]
    return _dataset(columns, " and ".join(labels))


def _rows_of(
    source: Source, generators: Mapping[str, Generator], system_prompt: str | None, base_dir: Path, *, templated: bool
) -> dict[str, list[Any]]:
    table = _generated(source, generators) if source.generator is not None else _stored(source, base_dir)
    label = _label(source)
    if source.max_rows is not None:
        table = {name: values[: source.max_rows] for name, values in table.items()}
    if not any(table.values()):
        raise DataError(f"{label} holds no rows, so there is nothing to train on. Name a source with rows.")
    columns = source.columns or Columns()
    asked, where = _asked(table, columns.prompt, label), f"{label}, column {columns.prompt}"
    prompts = _conversations(asked, system_prompt, where, templated=templated)
    rows = {"prompt": prompts, "reference": _references(table, columns.reference, label)}
    if columns.group is not None:
        rows["group"] = [str(value) for value in _column(table, columns.group, label)]
    return rows


def check_rows_enough(num_rows: int, prompts_per_rollout: int) -> None:
    """Refuse a dataset smaller than one rollout: TRL would train 0 steps on it and report success.

    Raises:
        DataError: ``num_rows < prompts_per_rollout``.
    """
    if num_rows < prompts_per_rollout:
        raise DataError(
            f"the training data hold {num_rows} rows, but one rollout takes {prompts_per_rollout} prompts: TRL would "
            f"train 0 steps and exit as if all were well. Give at least {prompts_per_rollout} rows, or generate fewer "
            "at once (algorithm.prompts_per_rollout, trl.generation_batch_size or trl.steps_per_generation)."
        )


def _label(source: Source) -> str:
    if source.path is not None:
        return source.path
    name = source.generator["name"] if isinstance(source.generator, dict) else source.generator
    return f"the generator {name}"


def _generated(source: Source, generators: Mapping[str, Generator]) -> _Table:
    spec: Any = source.generator
    name, options = (spec, {}) if isinstance(spec, str) else (spec["name"], {**spec})
    options.pop("name", None)
    if name not in generators:
        raise DataError(f"there is no generator {name!r}. {_nearest(name, generators)}")
    label = _label(source)
    parameters = inspect.signature(generators[name]).parameters
    try:
        inspect.signature(generators[name]).bind(**options)
    except TypeError as error:
        raise DataError(
            f"{label} cannot take these options: {error}. Its options are {', '.join(parameters)}."
        ) from None
    try:
        rows = generators[name](**options)
    except (TypeError, ValueError) as error:
        raise DataError(f"{label} refuses its options: {error}") from error
    keys = dict.fromkeys(key for row in rows for key in row)
    for key in keys:
        if without := [index for index, row in enumerate(rows) if key not in row]:
            raise DataError(f"{label} gives no {key!r} in {_rows(without)}. Every row must have the same keys.")
    return {key: [row[key] for row in rows] for key in keys}


def _stored(source: Source, base_dir: Path) -> _Table:
    from datasets import Dataset, load_dataset, load_from_disk
    from datasets.exceptions import DatasetsError

    path = source.path or ""
    found = local_path(path, base_dir)
    if found is None and (Path(path).suffix in _FORMATS or path.startswith((".", "/", "~"))):
        raise DataError(_no_such_file(path, base_dir))
    try:
        if found is not None and found.is_dir():
            dataset = _from_folder(load_from_disk(str(found)) if _is_saved(found) else None, source)
        elif found is not None:
            dataset = load_dataset(_format(found), data_files=str(found), split=source.split or "train")
        elif source.split is None:
            raise DataError(
                f"{path} is taken for a hub id, whose splits are not alike. Write `split: train` or `split: test`."
            )
        else:
            dataset = load_dataset(path, source.config_name, split=source.split)
    except (DatasetsError, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be loaded: {_reason(error)} {_advice(found)}") from error
    assert isinstance(dataset, Dataset)
    return {name: dataset[name] for name in dataset.column_names}


def _is_saved(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("dataset_info.json", "dataset_dict.json"))


def _from_folder(saved: Any, source: Source) -> Any:
    if saved is None:
        raise DataError(
            f"{source.path} is a folder that was not written by save_to_disk. Name a file in it "
            f"({', '.join(_FORMATS)}), or a folder that save_to_disk wrote."
        )
    splits = [*saved] if isinstance(saved, dict) else []
    if splits and source.split not in splits:
        raise DataError(f"{source.path} holds the splits {', '.join(splits)}. Write `split:` with one of them.")
    if not splits and source.split is not None:
        raise DataError(f"{source.path} holds one dataset without splits. Delete `split: {source.split}`.")
    return saved[source.split] if splits else saved


def _format(file: Path) -> str:
    if file.suffix not in _FORMATS:
        raise DataError(f"{file} is no file of a known kind. Rows are read from {', '.join(_FORMATS)}.")
    if file.stat().st_size == 0:
        raise DataError(f"{file} is an empty file. Name one with rows.")
    return _FORMATS[file.suffix]


def _no_such_file(path: str, base_dir: Path) -> str:
    folders = dict.fromkeys(((Path(path).expanduser()).parent, (base_dir / Path(path).expanduser()).parent))
    names = [file.name for folder in folders if folder.is_dir() for file in folder.iterdir()]
    near = difflib.get_close_matches(Path(path).name, names, n=1)
    hint = f"Did you mean {near[0]}?" if near else "Check the path."
    return f"there is no file or folder {path}, in the current directory or in {base_dir}. {hint}"


def _reason(error: BaseException) -> str:
    cause = error.__cause__ if error.__cause__ is not None and type(error).__module__.startswith("datasets") else error
    return f"{str(cause).strip().splitlines()[0].rstrip('.!')}." if str(cause).strip() else f"{type(cause).__name__}."


def _advice(found: Path | None) -> str:
    if found is not None:
        return "Check the file and its split."
    return (
        "Check the id, config_name and split; without network, name a local file, or load the set once where there is "
        "network and bring its HF_HOME."
    )


def _column(table: _Table, path: str, label: str) -> list[Any]:
    """The values of a column, or of a field of a struct column by its dotted path; a name with dots comes first."""
    if path in table:
        return [_plain(value) for value in table[path]]
    root, *fields = path.split(".")
    if root not in table:
        raise DataError(f"{label} has no column {root!r}. {_nearest(root, table)} Write it under `columns:`.")
    values = [_plain(value) for value in table[root]]
    for depth, field in enumerate(fields):
        above = ".".join([root, *fields[:depth]])
        keys = dict.fromkeys(key for value in values if isinstance(value, dict) for key in value)
        if not keys:
            raise DataError(f"{label}: column {above!r} is no struct, so {path!r} leads nowhere. Write `{above}`.")
        missing = [index for index, value in enumerate(values) if not isinstance(value, dict) or field not in value]
        if missing:
            raise DataError(f"{label}: {above!r} has no {field!r} in {_rows(missing)}. {_nearest(field, keys)}")
        values = [value[field] for value in values]
    return values


def _asked(table: _Table, prompt: str, label: str) -> list[Any]:
    if "{" not in prompt:
        return _column(table, prompt, label)
    try:
        names = template_columns(prompt)
    except ValueError as error:
        raise DataError(
            f"{label}: columns.prompt has {error}. A brace that stands for itself is written twice."
        ) from None
    return filled_prompts(prompt, {name: _column(table, name, label) for name in names})


def _references(table: _Table, wanted: str | list[str] | dict[str, str], label: str) -> list[Any]:
    if isinstance(wanted, str):
        return _column(table, wanted, label)
    paths = wanted if isinstance(wanted, dict) else {path: path for path in wanted}
    columns = {key: _column(table, path, label) for key, path in paths.items()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _conversations(
    prompts: list[Any], system_prompt: str | None, label: str, *, templated: bool
) -> list[list[dict[str, Any]]]:
    _refuse_rows(prompts, lambda prompt: not _has_text(prompt), label, "are empty or no prompts", "Drop these rows.")
    instead = "Name a column of bare questions under `columns: {prompt: …}`, or split the text into messages first."
    what = "already carry a chat template, which would be applied twice"
    if not templated:
        _refuse_rows(prompts, _is_templated, label, what, instead)
    if system_prompt is not None:
        instead = "Delete data.system_prompt, or name a column of bare questions."
        what = "have a system message of their own beside data.system_prompt"
        _refuse_rows(prompts, lambda prompt: _messages(prompt)[0]["role"] == "system", label, what, instead)
    first = [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
    return [first + _messages(prompt) for prompt in prompts]


def _refuse_rows(prompts: list[Any], wrong: Callable[[Any], bool], label: str, what: str, instead: str) -> None:
    if rows := [index for index, prompt in enumerate(prompts) if wrong(prompt)]:
        raise DataError(f"{label}: the prompts of {_rows(rows)} {what}. {instead}")


def _messages(prompt: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt


def _has_text(prompt: Any) -> bool:
    messages = _messages(prompt)
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages)
        and all(isinstance(message.get("content"), str) and message["content"].strip() for message in messages)
    )


def _is_templated(prompt: Any) -> bool:
    return any(mark in message["content"] for message in _messages(prompt) for mark in _TEMPLATE_MARKS)


def _dataset(columns: dict[str, list[Any]], label: str) -> "Dataset":
    """A dataset that gives back exactly these references: as Arrow's types, or as JSON where those change them."""
    import pyarrow as pa
    from datasets import Dataset, Features, Json

    others = {name: values for name, values in columns.items() if name != "reference"}
    features_of_others = Dataset.from_dict(others).features
    for features in (None, Features({**features_of_others, "reference": Json()})):
        try:  # encoded here: of a text such as "36" the library would take the number that it spells
            encoded = {} if features is None else {"reference": [json.dumps(each) for each in columns["reference"]]}
            dataset = Dataset.from_dict({**columns, **encoded}, features=features)
            unchanged = dataset["reference"][:] == columns["reference"]
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
        if unchanged:
            return dataset
    raise DataError(
        f"{label}: the references mix values that one dataset cannot hold unchanged, such as text beside numbers, "
        "dates or infinities. Write them all as text, or all as mappings of text and numbers."
    )


def _rows(indices: list[int]) -> str:
    named = ", ".join(map(str, indices[:_MOST_ROWS_NAMED]))
    more = f" and {len(indices) - _MOST_ROWS_NAMED} more" if len(indices) > _MOST_ROWS_NAMED else ""
    return f"row{'s' if len(indices) > 1 else ''} {named}{more} (counted from 0)"


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"{f'Did you mean {near[0]!r}? ' if near else ''}There are: {', '.join(known) or 'none'}."
