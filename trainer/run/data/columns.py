"""The columns of a table as prompts and references, exactly as the source holds them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from trainer.run.data.sources import Table
from trainer.run.data.wording import DataError, nearest, rows_named
from trainer.run.prompt_template import filled_prompts, template_columns


def column_of(table: Table, path: str, label: str) -> list[Any]:
    """The values of a column, or of a field of a struct column by its dotted path; a name with dots comes first."""
    if path in table:
        return [_plain(value) for value in table[path]]
    root, *fields = path.split(".")
    if root not in table:
        raise DataError(f"{label} has no column {root!r}. {nearest(root, table)} Write it under `columns:`.")
    values = [_plain(value) for value in table[root]]
    for depth, field in enumerate(fields):
        above = ".".join([root, *fields[:depth]])
        keys = dict.fromkeys(key for value in values if isinstance(value, dict) for key in value)
        if not keys:
            raise DataError(f"{label}: column {above!r} is no struct, so {path!r} leads nowhere. Write `{above}`.")
        missing = [index for index, value in enumerate(values) if not isinstance(value, dict) or field not in value]
        if missing:
            raise DataError(f"{label}: {above!r} has no {field!r} in {rows_named(missing)}. {nearest(field, keys)}")
        values = [value[field] for value in values]
    return values


def prompts_of(table: Table, prompt: str, label: str) -> list[Any]:
    """The column ``prompt``, or the text ``prompt`` filled with the ``{column}`` in it."""
    if "{" not in prompt:
        return column_of(table, prompt, label)
    try:
        names = template_columns(prompt)
    except ValueError as error:
        raise DataError(
            f"{label}: columns.prompt has {error}. A brace that stands for itself is written twice."
        ) from None
    return filled_prompts(prompt, {name: column_of(table, name, label) for name in names})


def references_of(table: Table, wanted: str | list[str] | dict[str, str], label: str) -> list[Any]:
    """One column as it is, or several as a mapping a row."""
    if isinstance(wanted, str):
        return column_of(table, wanted, label)
    paths = wanted if isinstance(wanted, dict) else {path: path for path in wanted}
    columns = {key: column_of(table, path, label) for key, path in paths.items()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
