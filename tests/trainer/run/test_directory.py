"""Where a run lives, and which checkpoint it goes on from."""

import json
from pathlib import Path

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.record.directory import check_same_run, fresh_directory
from tests.trainer.run.test_placement import RECORD

RUN = """
model: {name_or_path: somewhere/model}
data: {train: {path: somewhere/rows}}
rewards: [{verifier: exact_match}]
trl: {learning_rate: 1e-6, max_steps: 10, lr_scheduler_type: constant}
"""


def test_a_run_never_lands_where_another_has_been(tmp_path: Path):
    first = tmp_path / "run"
    assert [fresh_directory(first).name for _ in range(3)] == ["run", "run-2", "run-3"]
    assert (tmp_path / "run-3").is_dir()  # claimed, though nothing is in it yet


def test_a_continuation_may_last_longer_but_not_train_otherwise(tmp_path: Path):
    (tmp_path / "base.yaml").write_text(RUN)
    load_config(tmp_path / "base.yaml").save_resolved(tmp_path / "config.yaml")
    longer = ["trl.max_steps=20", "logging.samples_every_steps=1", "output_dir=elsewhere"]
    (tmp_path / "manifest.json").write_text(json.dumps(RECORD | {"world_size": 2}))
    check_same_run(load_config(tmp_path / "base.yaml", longer), tmp_path, 2)
    with pytest.raises(Refusal, match="on 2 processes and would be resumed on 1"):
        check_same_run(load_config(tmp_path / "base.yaml"), tmp_path, 1)
    with pytest.raises(Refusal, match=r"trl.learning_rate: 1e-06 → 0.1\n  trl.weight_decay: 'absent' → 0.5"):
        check_same_run(
            load_config(tmp_path / "base.yaml", ["trl.learning_rate=0.1", "trl.weight_decay=0.5"]), tmp_path, 2
        )


def test_a_continuation_lasts_longer_only_where_the_learning_rate_does_not_depend_on_it(tmp_path: Path):
    (tmp_path / "base.yaml").write_text(RUN.replace("constant", "linear"))
    load_config(tmp_path / "base.yaml").save_resolved(tmp_path / "config.yaml")
    (tmp_path / "manifest.json").write_text(json.dumps(RECORD))
    with pytest.raises(Refusal, match=r"trl.max_steps: 10 → 20\nThe learning rate depends on how long"):
        check_same_run(load_config(tmp_path / "base.yaml", ["trl.max_steps=20"]), tmp_path, 1)
