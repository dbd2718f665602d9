"""Rows to train on whose reference no verifier can use: so many as the file allows are left out before training."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from evenkeel.errors import Refusal
from evenkeel.trainer.run.experiment import Experiment

ROWS = [{"prompt": f"{n} + 1?", "reference": str(n + 1) if n % 3 else ""} for n in range(1, 8)]  # 3 and 6 have none


def test_a_few_are_left_out_of_training_and_held_out_rows_never(tmp_path: Path):
    for name, rows in (("rows", ROWS), ("two", ROWS[:2])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"train": {"path": "rows.jsonl"}, "test": {"path": "two.jsonl"}, "max_unusable": 2}
    run = {"model": {"name_or_path": "none"}, "data": data, "rewards": [{"verifier": "math_answer"}]}
    YAML(typ="safe").dump(run, tmp_path / "run.yaml")
    rows = Experiment.of_file(tmp_path / "run.yaml").rows
    remaining = [messages[-1]["content"] for messages in rows["train"]["prompt"]]
    assert remaining == ["1 + 1?", "2 + 1?", "4 + 1?", "5 + 1?", "7 + 1?"]
    assert len(rows["test"]) == 2
    held_out = Experiment.of_file(tmp_path / "run.yaml", ["data.test.path=rows.jsonl"])
    with pytest.raises(Refusal, match=r"data\.test, math_answer"):
        assert held_out.rows
