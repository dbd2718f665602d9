"""Rows to train on: sources of the configuration → a dataset with the columns ``prompt``, ``reference`` and ``task``.

``prompt`` is a conversation, a list of ``{role, content}``, or a raw text. ``reference`` is what the verifier is given,
exactly as the source holds it: rows with different keys or types stay different, which an Arrow table alone would not
allow.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import Columns, Source
from evenkeel.trainer.run.config.data_section import RESERVED
from evenkeel.trainer.run.data.columns import column_of, prompts_of, references_of
from evenkeel.trainer.run.data.conversations import conversations
from evenkeel.trainer.run.data.sources import Generator, label_of, table_of

if TYPE_CHECKING:
    from datasets import Dataset


def load_rows(
    sources: Iterable[Source],
    *,
    generators: Mapping[str, Generator],
    system_prompt: str | None,
    base_dir: Path,
    raw: bool = False,
    all_columns: bool = False,
    column: str | None = None,
) -> "Dataset":
    """The rows of all ``sources`` one after another, in their order; training shuffles them.

    A text prompt becomes one user message; messages stay as they are. ``columns.prompt`` may be text with ``{column}``
    in it (`prompts_of`). ``system_prompt`` is put first. Files are read by their extension; a folder must
    come from ``save_to_disk``; everything else is taken for a hub id. Without ``source.columns`` the columns must
    already be called ``prompt`` and ``reference``. A source with a ``task`` gives its rows that task in a column
    ``task``; ``columns.group`` becomes a text column ``group``, each of ``columns.environment`` a column of that name.
    A row whose source does not give a column of another one holds ``None`` there.

    Args:
        generators: name → function of the options in ``source.generator`` that returns rows.
        base_dir: where a relative path is looked for before the current directory.
        raw: prompts are the texts of their only messages, unchanged (`conversations`).
        all_columns: keep the others too, under their own names, as TRL does.
        column: one to keep, where not all are.

    Raises:
        Refusal: a source, column or generator that is not there, no rows, prompts that are empty, already carry a
            chat template or have a system message of their own, or references that a dataset cannot hold.
    """
    from datasets import Dataset, concatenate_datasets

    parts, labels, others, sources = [], [], set[str](), [*sources]
    taken = RESERVED - ({"task"} if all(source.task is None for source in sources) else set())
    for source in sources:
        table, label, columns = table_of(source, generators, base_dir), label_of(source), source.columns or Columns()
        asked = prompts_of(table, columns.prompt, label)
        prompts = conversations(asked, system_prompt, label, columns.prompt, raw=raw)
        rows = {"prompt": prompts, "reference": references_of(table, columns.reference, label)}
        if rows["reference"] == asked:
            raise Refusal(
                f"{label}: the column {columns.reference!r} holds in every row what {columns.prompt!r} does. Name the "
                "column of answers: `columns: {reference: …}`."
            )
        if columns.group is not None:
            rows["group"] = [str(value) for value in column_of(table, columns.group, label)]
        rows |= {name: column_of(table, path, label) for name, path in columns.of_reset.items()}
        if source.task is not None:
            rows["task"] = [source.task] * len(prompts)
        wanted = {*table} if all_columns else {column}
        kept = [name for name in table if name in wanted - {*rows, *taken}]
        rows |= {name: column_of(table, name, label) for name in kept}
        others |= {*kept}
        parts.append(rows)
        labels.append(label)
    datasets = [Dataset.from_dict({"prompt": [prompt for part in parts for prompt in part["prompt"]]})]
    for name in dict.fromkeys(name for part in parts for name in part if name != "prompt"):
        values = [value for part in parts for value in part.get(name, [None] * len(part["prompt"]))]
        datasets.append(_unchanged(name, values, " and ".join(labels), exactly=name not in others))
    return concatenate_datasets(datasets, axis=1)


def check_rows_enough(num_rows: int, prompts_per_rollout: int) -> None:
    """Refuse a dataset smaller than one rollout: TRL would train 0 steps on it and report success."""
    if num_rows < prompts_per_rollout:
        raise Refusal(
            f"the training data hold {num_rows} rows, and one rollout takes {prompts_per_rollout} prompts. Write a "
            "smaller algorithm.prompts_per_rollout."
        )


def _unchanged(name: str, values: list[Any], label: str, *, exactly: bool) -> "Dataset":
    """One column that gives back these values: as Arrow's types, or as JSON where those refuse or change one."""
    import pyarrow as pa
    from datasets import Dataset, Features, Json

    for as_json in (False, True):
        try:  # encoded here: of a text such as "36" the library would take the number that it spells
            encoded = [json.dumps(each) for each in values] if as_json else values
            dataset = Dataset.from_dict({name: encoded}, features=Features({name: Json()}) if as_json else None)
            found = dataset[name][:]
            if not exactly or (found == values and _as_json(found) == _as_json(values)):
                return dataset
        except (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError):
            continue
    raise Refusal(
        f"{label}: the column {name!r} has values that one dataset cannot hold unchanged, such as NaN, nanoseconds, "
        "or a date beside a text. Write them as text."
    )


def _as_json(values: list[Any]) -> str:
    """1 is not 1.0 here, nor true; what JSON does not know, such as dates, may be of any class that compares equal."""
    return json.dumps(values, default=lambda value: None)
