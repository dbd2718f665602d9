"""Faults planted in a real run of TRL's own trainer, found by the live rules and in the log that it leaves."""

from pathlib import Path
from typing import Any

from trl import GRPOTrainer

from evenkeel.trainer.lab.doctor.callback import Doctor
from evenkeel.trainer.lab.doctor.readers import read
from evenkeel.trainer.lab.doctor.rules import Examination
from tests.trainer.training import train


def equal_rewards(completions: list[Any], **_: Any) -> list[float]:
    return [0.5] * len(completions)


def test_they_are_said_once_each_at_its_step_and_found_in_the_log(tiny_model: Path, tmp_path: Path) -> None:
    said: list[str] = []
    faults = {"learning_rate": 0.0, "reward": equal_rewards, "max_completion_length": 2, "max_steps": 6}
    trainer = train(GRPOTrainer, tiny_model, tmp_path, callbacks=[Doctor(said.append)], **faults)
    assert sorted(line.partition(": ")[0] for line in said) == ["step 3", "step 5", "step 5", "step 5"]
    trainer.state.save_to_json(str(tmp_path / "trainer_state.json"))
    found = Examination().add_all(read(tmp_path).lines).findings
    first = {name: finding.first_step for name, finding in found.items()}
    assert first == {"learning-rate-zero": 3, "nothing-trained": 5, "dead-groups": 5, "truncated": 5}
