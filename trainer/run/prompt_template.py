"""Prompts written from several columns of a row: a text with ``{column}`` in it."""

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any


def template_columns(template: str) -> list[str]:
    """The columns that ``template`` names, in their order; dots step into structs.

    Raises:
        ValueError: braces that do not pair up, or no column between them.
    """
    try:
        names = [name for _, name, *_ in Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise ValueError(f"braces that do not pair up ({error})") from None
    if not names or not all(names):
        raise ValueError("no column between its braces")
    return list(dict.fromkeys(names))


def filled_prompts(template: str, columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """``template`` once for each row, with its values in the columns' places.

    The items of a list stand on lines of their own, an empty value leaves nothing; ``{{`` stands for a brace.
    """
    parts = [(text, name) for text, name, *_ in Formatter().parse(template)]
    rows = range(len(next(iter(columns.values()), ())))
    return [
        "".join(text + ("" if name is None else _written(columns[name][row])) for text, name in parts) for row in rows
    ]


def _written(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
