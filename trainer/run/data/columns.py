"""The columns of a table as prompts and references, exactly as the source holds them."""

from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

import numpy as np

from evenkeel.errors import Refusal, suggest
from evenkeel.trainer.run.data.sources import Table, rows_named


def column_of(table: Table, path: str, label: str) -> list[Any]:
    """The values of a column, or of a field of a struct column by its dotted path; a name with dots comes first."""
    if path in table:
        return _values(table, path, label)
    root, *fields = path.split(".")
    if root not in table:
        raise Refusal(f"{label} has no column {root!r}. {nearest(root, table)} Write it under `columns:`.")
    values = _values(table, root, label)
    for depth, field in enumerate(fields):
        above = ".".join([root, *fields[:depth]])
        missing = [index for index, value in enumerate(values) if not isinstance(value, dict) or field not in value]
        if missing:
            keys = dict.fromkeys(key for value in values if isinstance(value, dict) for key in value)
            raise Refusal(f"{label}: {above!r} has no {field!r} in {rows_named(missing)}. {nearest(field, keys)}")
        values = [value[field] for value in values]
    return values


def prompts_of(table: Table, prompt: str, label: str) -> list[Any]:
    """The column ``prompt``, or the text ``prompt`` once for each row, with its values in place of each ``{column}``.

    The items of a list become lines, ``None`` becomes nothing; ``{{`` stands for a brace.
    """
    if "{" not in prompt:
        return column_of(table, prompt, label)
    try:
        parts = [*Formatter().parse(prompt)]
        if any(form or conversion for *_, form, conversion in parts):
            raise ValueError("a column takes no format")
    except ValueError as error:
        raise Refusal(f"{label}: columns.prompt: {error}. A literal brace is written twice.") from None
    columns = {name: column_of(table, name, label) for _, name, *_ in parts if name is not None}
    return [
        "".join(text + ("" if name is None else _written(columns[name][row])) for text, name, *_ in parts)
        for row in range(len(next(iter(table.values()))))
    ]


def references_of(table: Table, wanted: str | list[str] | dict[str, str], label: str) -> list[Any]:
    """One column as it is, or several as one mapping per row."""
    if isinstance(wanted, str):
        return column_of(table, wanted, label)
    paths = wanted if isinstance(wanted, dict) else {path: path for path in wanted}
    columns = {key: column_of(table, path, label) for key, path in paths.items()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _values(table: Table, name: str, label: str) -> list[Any]:
    values: list[Any] = []
    try:
        for value in table[name]:
            values.append(_plain(value))
    except RecursionError:
        fault = "is nested too deep. Write it as text."
    except UnicodeEncodeError:
        fault = "has half of a surrogate pair, which is no character. Delete it."
    else:
        return values
    raise Refusal(f"{label}: {rows_named([len(values)])} of the column {name!r} {fault}")


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        value.encode()
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _written(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that ``name`` resembles, and all that there are."""
    known = [*known]
    return f"{suggest(name, known)} There are: {', '.join(known) or 'none'}.".lstrip()
