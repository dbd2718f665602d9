"""Rows to train on whose reference no verifier can use: so many as the file allows are left out before training."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from evenkeel.errors import Refusal
from evenkeel.trainer.run.experiment import Experiment

ROWS = [{"prompt": f"{n} + 1?", "reference": str(n + 1) if n % 3 else ""} for n in range(1, 8)]  # 3 and 6 have none


def loaded(folder: Path, test: str, max_unusable: int) -> dict[str, int]:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS[:2]))
    data = {"train": {"path": "rows.jsonl"}, "test": {"path": test}, "max_unusable": max_unusable}
    run = {"model": {"name_or_path": "none"}, "data": data, "rewards": [{"verifier": "math_answer"}]}
    YAML(typ="safe").dump(run, folder / "run.yaml")
    rows = Experiment.of_file(folder / "run.yaml").rows
    remaining = [messages[-1]["content"] for messages in rows["train"]["prompt"]]
    assert remaining == ["1 + 1?", "2 + 1?", "4 + 1?", "5 + 1?", "7 + 1?"]
    return {part: len(dataset) for part, dataset in rows.items()}


def test_as_many_as_allowed_are_left_out_of_training(tmp_path: Path):
    assert loaded(tmp_path, "two.jsonl", 2) == {"train": 5, "test": 2}


def test_held_out_rows_are_never_left_out(tmp_path: Path):
    with pytest.raises(Refusal, match=r"data\.test, math_answer"):
        loaded(tmp_path, "rows.jsonl", 2)
