"""What decides a run's numbers is recorded, and every difference from the record is named."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.record.manifest import (
    data_fingerprint,
    differences,
    model_files,
    read_manifest,
    starting_point,
    write_manifest,
)

RUN = """
model: {name_or_path: somewhere/model}
data: {train: {path: somewhere/rows}}
rewards: [{verifier: exact_match}]
seed: 4
"""
ROWS = [{"prompt": [{"role": "user", "content": "2 + 2?"}], "reference": {"numbers": [2, 2], "target": 4}}]


def start(folder: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    made = starting_point(load_config(folder / "run.yaml"), {"train": data_fingerprint(rows)})
    return {**made, "model_files": {"model.safetensors": "ab" * 32}}


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (tmp_path / "run.yaml").write_text(RUN)
    run = tmp_path / "run"
    write_manifest(run, load_config(tmp_path / "run.yaml"), 2, start(tmp_path, ROWS))
    return run


def test_the_record_holds_what_a_rerun_needs(recorded: Path):
    record = read_manifest(recorded)
    assert (record["seed"], record["world_size"], record["environment"]) == (4, 2, {"OMP_NUM_THREADS": "1"})
    assert {"torch", "trl", "transformers", "numpy"} <= record["packages"].keys()
    assert record["machine"]["torch_threads"] >= 1
    assert load_config(recorded / "config.yaml").run_seed == 4


def test_the_commit_of_a_hub_id_is_compared_where_both_know_it():
    one, template, other = {"commit": "abc"}, {"model.chat_template": "t"}, {"model.chat_template": "u"}
    for before, now, changed in ((template, template | one, 0), (template | one, other, 1), (one, {"commit": "d"}, 1)):
        assert len(differences({"model_files": before}, {"model_files": now})) == changed


def test_large_weights_are_read_at_both_ends(tmp_path: Path):
    file = tmp_path / "model.safetensors"
    fingerprints = set()
    for written in (None, 0, (200 << 20) - 1):
        with file.open("wb") as weights:
            weights.truncate(200 << 20)  # sparse
            if written is not None:
                weights.seek(written)
                weights.write(b"x")
        fingerprints.add(model_files(str(tmp_path), None)["model.safetensors"])
    assert len(fingerprints) == 3


@given(st.lists(st.dictionaries(st.text(), st.integers() | st.text()), min_size=1, max_size=4), st.data())
def test_a_fingerprint_changes_exactly_with_the_rows(rows: list[dict[str, Any]], data: st.DataObject):
    """The order of a row's keys is no difference; any other value, and the order of rows, is."""
    assert data_fingerprint([dict(reversed(row.items())) for row in rows]) == data_fingerprint(rows)
    changed = [dict(row) for row in rows]
    changed[data.draw(st.integers(0, len(rows) - 1))]["another key"] = None
    assert data_fingerprint(changed) != data_fingerprint(rows)
    assert (data_fingerprint(rows[::-1]) == data_fingerprint(rows)) == (rows[::-1] == rows)
