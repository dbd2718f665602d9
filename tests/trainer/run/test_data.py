"""Rows from real files, folders and generators: what comes out, and what is refused with which words."""

import json
import math
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import datasets
import pandas
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import Source
from evenkeel.trainer.run.data.rows import load_rows

ROWS = [{"question": f"{n} + 1?", "answer": str(n + 1), "info": {"difficulty": {"level": n}}} for n in range(5)]
COLUMNS = {"prompt": "question", "reference": "answer"}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def rows(system_prompt: str | None = None, base_dir: Path = Path(), generators: Any = None, **source: Any) -> Any:
    return load_rows(
        [Source.model_validate(source)], generators=generators or {}, system_prompt=system_prompt, base_dir=base_dir
    )


def generated(made: list[dict[str, Any]], system_prompt: str | None = None, **source: Any) -> Any:
    return rows(system_prompt, generators={"made": lambda: made}, generator="made", **source)


def mixture(*sources: dict[str, Any], generators: Any) -> Any:
    found = [Source.model_validate(source) for source in sources]
    return load_rows(found, generators=generators, system_prompt=None, base_dir=Path())


def refusal(load: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    with pytest.raises(Refusal) as caught:
        load(*arguments, **options)
    return str(caught.value)


def write_jsonl(file: Path) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


WRITERS: dict[str, Callable[[Path], Any]] = {
    "json": lambda file: file.write_text(json.dumps(ROWS)),
    "pretty.json": lambda file: file.write_text("\n".join(json.dumps(row, indent=1) for row in ROWS)),
    "jsonl": write_jsonl,
    "adjacent.jsonl": lambda file: file.write_text("".join(map(json.dumps, ROWS))),
    "parquet": lambda file: datasets.Dataset.from_list(ROWS).to_parquet(file),
}


@pytest.mark.parametrize("extension", WRITERS)
def test_a_local_file_is_read_by_its_extension(tmp_path: Path, extension: str) -> None:
    WRITERS[extension](tmp_path / f"r.{extension}")
    data = rows(path=str(tmp_path / f"r.{extension}"), columns=COLUMNS)
    assert data.column_names == ["prompt", "reference"]
    assert data["prompt"][:] == [[{"role": "user", "content": row["question"]}] for row in ROWS]
    assert data["reference"][:] == [row["answer"] for row in ROWS]


WRITTEN: list[tuple[str, list[str], list[Any]]] = [
    ("jsonl", ['"2024-01-01"', '"2024-05-03T01:00:00"'], ["2024-01-01", "2024-05-03T01:00:00"]),
    ("jsonl", ['"007"', "7", "7.0", "true"], ["007", 7, 7.0, True]),
    ("jsonl", ["9007199254740993", "1.5"], [9007199254740993, 1.5]),
    ("jsonl", ["1", "2.5"], [1, 2.5]),
    ("csv", ["007", "0101"], ["007", "0101"]),
    ("csv", ["1.10", "None", "NA", "True"], ["1.10", "None", "NA", "True"]),
    ("csv", ["12", "-3"], [12, -3]),
    ("csv", ["0.25", "", "3"], ["0.25", None, "3"]),
]


@pytest.mark.parametrize(("extension", "written", "values"), WRITTEN)
def test_values_are_those_that_are_written(tmp_path: Path, extension: str, written: list[str], values: Any) -> None:
    form, first = (
        ("q,{}\n", "prompt,reference\n") if extension == "csv" else ('{{"prompt": "q", "reference": {}}}\n', "")
    )
    (tmp_path / f"r.{extension}").write_text(first + "".join(map(form.format, written)))
    assert repr(rows(path=str(tmp_path / f"r.{extension}"))["reference"][:]) == repr(values)


def test_a_relative_path_is_looked_for_in_the_base_directory_and_then_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base").mkdir()
    (tmp_path / "r.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    assert len(rows(path="r.jsonl", columns=COLUMNS, base_dir=tmp_path / "base")) == 1
    write_jsonl(tmp_path / "base" / "r.jsonl")
    assert len(rows(path="r.jsonl", columns=COLUMNS, base_dir=tmp_path / "base")) == 5


@pytest.mark.parametrize(
    ("reference", "first"),
    [
        ("answer", "1"),
        (["answer", "question"], {"answer": "1", "question": "0 + 1?"}),
        ({"gold": "answer", "level": "info.difficulty.level"}, {"gold": "1", "level": 0}),
    ],
)
def test_a_reference_is_one_column_several_or_a_field(tmp_path: Path, reference: Any, first: Any) -> None:
    write_jsonl(tmp_path / "r.jsonl")
    data = rows(path=str(tmp_path / "r.jsonl"), columns={"prompt": "question", "reference": reference})
    assert data[0]["reference"] == first


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"prompt": "qestion"}, "has no column 'qestion'. Did you mean question? There are: question, answer, info."),
        ({"prompt": "question", "reference": "answer.x"}, "'answer' has no 'x'"),
        ({"prompt": "{question:.3}"}, "a column takes no format"),
    ],
)
def test_a_column_that_is_not_there_names_the_nearest(columns: Any, words: str) -> None:
    assert words in refusal(generated, ROWS, columns=columns)


def test_two_columns_that_hold_the_same_are_refused() -> None:
    made = [{"prompt": f"{n} + 1?", "reference": f"{n} + 1?"} for n in range(3)]
    assert "in every row what 'prompt' does" in refusal(generated, made)
    made[0]["reference"] = "1"
    assert len(generated(made)) == 3


def test_messages_stay_as_they_are_and_the_system_prompt_comes_first() -> None:
    messages = [{"role": role, "content": "q"} for role in ("user", "assistant", "user")]
    made = [{"prompt": messages, "reference": "x"}, {"prompt": "text", "reference": "y"}]
    system = {"role": "system", "content": "Think."}
    assert generated(made)["prompt"][:] == [messages, [{"role": "user", "content": "text"}]]
    assert generated(made, "Think.")["prompt"][1] == [system, {"role": "user", "content": "text"}]


EIGHTHS = st.integers(-10_000, 10_000).map(lambda number: number / 8)
SCALAR = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | EIGHTHS
REFERENCE = st.recursive(
    SCALAR | st.text(st.characters(codec="utf-8", exclude_categories=["C"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)


VALUE = st.dictionaries(st.sampled_from(["names", "target", "tests"]), REFERENCE)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(VALUE, REFERENCE), min_size=1, max_size=4))
def test_verifiers_and_environments_get_exactly_the_values_of_their_row(values: list[tuple[Any, Any]]) -> None:
    made = [{"prompt": "q", "reference": reference, "board": board} for reference, board in values]
    data = generated(made, columns={"environment": ["board"]})
    assert repr(list(zip(data["reference"], data["board"], strict=True))) == repr(values)
    assert repr([(row["reference"], row["board"]) for row in data]) == repr(values)


def test_columns_of_an_environment_are_none_in_rows_of_sources_without_them_and_rewards_of_trls_get_all_others() -> (
    None
):
    generators = {
        "games": lambda: [{"prompt": "Play.", "reference": "x", "draw": {"seed": seed}} for seed in (3, "four")],
        "sums": lambda: [{"prompt": "1+1?", "reference": 2}],
    }
    games = {"generator": "games", "columns": {"environment": {"seed": "draw.seed"}}}
    both = mixture(games, {"generator": "sums"}, generators=generators)
    assert both.column_names == ["prompt", "reference", "seed"]
    assert both["seed"][:] == [3, "four", None]
    made = [{"prompt": "?", "reference": 1, "group": "x", "task": "sums", "level": math.nan, "tests": [1, "a"]}]
    options: Any = {"generators": {"made": lambda: made}, "system_prompt": None, "base_dir": Path()}
    data = load_rows([Source(generator="made")], all_columns=True, **options)
    assert data.column_names == ["prompt", "reference", "task", "level", "tests"], (
        "all but those that rows use otherwise"
    )
    assert (data["tests"][0], math.isnan(data["level"][0])) == ([1, "a"], True)


Form = Enum("Form", {"BOXED": "boxed"}, type=str)
DAYS = [pandas.Timestamp("2024-01-01"), pandas.Timestamp("2024-01-02")]


@pytest.mark.parametrize(
    "references", [DAYS, [DAYS, [*DAYS, DAYS[0]]], [Decimal("1.5"), Decimal("2.25")], [Form.BOXED], [Form.BOXED, 3]]
)
def test_references_may_come_back_as_another_class_that_compares_equal(references: list[Any]) -> None:
    made = [{"prompt": "q", "reference": reference, "board": reference} for reference in references]
    data = generated(made, columns={"environment": ["board"]})
    assert data["reference"][:] == data["board"][:] == references


def test_nanosecond_timestamps_of_a_parquet_file_are_references(tmp_path: Path) -> None:
    days = pyarrow.array(DAYS, pyarrow.timestamp("ns"))
    pyarrow.parquet.write_table(pyarrow.table({"prompt": ["q", "q"], "reference": days}), tmp_path / "r.parquet")
    assert rows(path=str(tmp_path / "r.parquet"))["reference"][:] == DAYS


@pytest.mark.parametrize(
    "references", [[{"n": 2**70}], [float("nan")], [{"n": {"a"}}], [{}, {"n": 1e16 + 2}], [Decimal(1), 2]]
)
def test_references_that_would_be_changed_are_refused(references: list[Any]) -> None:
    made = [{"prompt": "q", "reference": reference} for reference in references]
    assert "cannot hold unchanged" in refusal(generated, made)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"path": "s.jsonl"}, "Did you mean r.jsonl?"),
        ({"path": "r.txt"}, "r.txt is not a file of a known kind (.parquet, .json, .jsonl, .csv)"),
        ({"path": "broken.jsonl"}, "broken.jsonl cannot be loaded: Expecting value: line 2"),
        ({"path": "twice.jsonl"}, "twice.jsonl cannot be loaded: a key twice in"),
        ({"path": "commas.csv"}, "commas.csv cannot be loaded: rows have more cells"),
        ({"path": "latin.jsonl"}, "latin.jsonl cannot be loaded: 'utf-8' codec"),
        ({"path": "texts.json"}, "texts.json cannot be loaded: row 1 (counted from 0) is no mapping"),
        ({"path": "half.jsonl"}, "half.jsonl: row 1 (counted from 0) of the column 'prompt' has half of a"),
        ({"path": "half_key.jsonl"}, "half_key.jsonl: row 1 (counted from 0) of the column 'prompt' has half of a"),
        ({"path": "deep.jsonl"}, "deep.jsonl: row 1 (counted from 0) of the column 'prompt' is nested too deep"),
        ({"path": "deeper.jsonl"}, "deeper.jsonl cannot be loaded: Nested too deep: line 2"),
        ({"path": "r.jsonl", "split": "train[:50%]"}, "r.jsonl has no split 'train[:50%]'. Leave it out; max_rows"),
        ({"path": "hub/rows"}, "hub/rows is taken for a hub id. Write `split: train`"),
    ],
)
def test_a_path_that_cannot_be_loaded_is_explained(tmp_path: Path, source: dict[str, str], words: str) -> None:
    write_jsonl(tmp_path / "r.jsonl")
    (tmp_path / "r.txt").write_text("x")
    (tmp_path / "broken.jsonl").write_text('{"a": 1}\n{"a": \n')
    (tmp_path / "twice.jsonl").write_text('{"a": 1, "a": 2}\n')
    (tmp_path / "commas.csv").write_text("prompt,reference\nFirst, add 1 and 2,3\n")
    (tmp_path / "latin.jsonl").write_bytes('{"a": "é"}'.encode("latin-1"))
    second = {
        "half": r'"\ud83d"',
        "half_key": r'[{"\ud83d": "q"}]',
        "deep": "[" * 500 + "]" * 500,
        "deeper": "[" * 5000,
    }
    for name, prompt in second.items():
        (tmp_path / f"{name}.jsonl").write_text(f'{{"prompt": "q"}}\n{{"prompt": {prompt}}}\n')
    (tmp_path / "texts.json").write_text('[{"a": 1}, "b"]')
    assert words in refusal(rows, base_dir=tmp_path, **source)


def test_a_mixture_keeps_each_rows_reference_and_names_its_task():
    """Mappings beside lists, numbers and texts that spell some: rows of different verifiers share one dataset."""
    references = {"sums": [{"numbers": [3, 4], "target": 7}], "words": ["x", 2.5, ["a", "b"], "36", "[1]", "null"]}
    generators = {
        name: lambda name=name: [{"prompt": f"{name}?", "reference": reference} for reference in references[name]]
        for name in references
    }
    both = mixture(*({"generator": name, "task": name} for name in references), generators=generators)
    assert both["reference"][:] == references["sums"] + references["words"]
    assert [type(reference) for reference in both["reference"]] == [dict, str, float, list, str, str, str]
    assert both["task"][:] == ["sums"] + ["words"] * 6
    assert [messages[-1]["content"] for messages in both["prompt"]] == ["sums?"] + ["words?"] * 6


def test_a_prompt_is_written_from_several_columns_and_rows_keep_their_group():
    made = [{"text": f"add {n}", "tests": ["one", "two"], "none": None, "level": n, "reference": n} for n in (1, 10)]
    data = generated(made, columns={"prompt": "{text}: {{{tests}}}{none}", "group": "level"})
    assert data["prompt"][1] == [{"role": "user", "content": "add 10: {one\ntwo}"}]
    assert data["group"][:] == ["1", "10"]
