"""Where a run lives, and which checkpoint it goes on from."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.record.directory import check_same_run
from evenkeel.trainer.run.record.run_record import RunRecord

RUN = """
model: {name_or_path: somewhere/model}
data: {train: {path: somewhere/rows}}
rewards: [{verifier: exact_match}]
trl: {learning_rate: 1e-6, max_steps: 10, lr_scheduler_type: constant}
"""


@pytest.mark.parametrize(
    ("schedule", "settings", "started", "refused"),
    [
        ("constant", ["trl.max_steps=20", "logging.samples_every_steps=1", "output_dir=elsewhere"], 2, ""),
        ("constant", [], 1, "on 1 processes and would be resumed on 2"),
        (
            "constant",
            ["trl.learning_rate=0.1", "trl.weight_decay=0.5"],
            2,
            r"trl.learning_rate: 1e-06 → 0.1\n  trl.weight_decay: 'absent' → 0.5",
        ),
        ("linear", ["trl.max_steps=20"], 2, r"trl.max_steps: 10 → 20\nThe learning rate depends on how long"),
    ],
)
def test_a_continuation_may_last_longer_but_not_train_otherwise(
    tmp_path: Path, schedule: str, settings: list[str], started: int, refused: str
):
    (tmp_path / "base.yaml").write_text(RUN.replace("constant", schedule))
    load_config(tmp_path / "base.yaml").save_resolved(tmp_path / "config.yaml")
    again = load_config(tmp_path / "base.yaml", settings)
    with pytest.raises(Refusal, match=refused) if refused else nullcontext():
        check_same_run(again, RunRecord(tmp_path), started, 2)
