"""The command that writes knights-and-knaves puzzles."""

import importlib.util
import json

import pytest

from evenkeel.rewards.verifiers.knights_knaves import KnightsKnaves
from tests.paths import ROOT

SCRIPT = ROOT / "scripts" / "make_knights_knaves.py"


@pytest.fixture(scope="module")
def main():
    specification = importlib.util.spec_from_file_location("make_knights_knaves", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.main


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_rows_are_written_and_judged(main, tmp_path, form):
    main([str(tmp_path), "--people", "2", "3", "--train", "4", "--test", "2", "--format", form])

    for name, count in (("train", 8), ("test", 4)):
        rows = _read(tmp_path / f"{name}.{form}")
        assert len(rows) == count
        assert [row["index"] for row in rows] == list(range(count))
        verifier = KnightsKnaves()
        assert all(verifier(verifier.gold_completion(row), row).score == 1.0 for row in rows)


def _read(path):
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
