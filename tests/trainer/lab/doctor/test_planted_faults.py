"""Faults planted in real runs of a tiny policy, found by the live rules and in the log that the run leaves."""

from pathlib import Path
from typing import Any

import pytest
from trl import GRPOTrainer

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.lab.doctor.callback import Doctor
from evenkeel.trainer.lab.doctor.readers import read
from evenkeel.trainer.lab.doctor.rules import Examination
from tests.trainer.training import train


def equal_rewards(completions: list[Any], **_: Any) -> list[float]:
    return [0.5] * len(completions)


PLANTED: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "learning rate 0": ({"learning_rate": 0.0, "max_steps": 4}, {"learning-rate-zero": 3}),
    "two tokens an answer": (
        {"max_completion_length": 2, "reward": lambda completions, **_: [0.0] * len(completions), "max_steps": 6},
        {"truncated": 5, "nothing-trained": 5},
    ),
    "all rewards equal": ({"reward": equal_rewards, "max_steps": 6}, {"nothing-trained": 5, "dead-groups": 5}),
}


@pytest.mark.parametrize(
    ("fault", "trainer_class"), [*((fault, RLVRTrainer) for fault in PLANTED), ("learning rate 0", GRPOTrainer)]
)
def test_it_is_said_once_at_its_step_and_found_in_the_log(
    fault: str, trainer_class: type[GRPOTrainer], tiny_model: Path, tmp_path: Path
) -> None:
    settings, expected = PLANTED[fault]
    said: list[str] = []
    trainer = train(trainer_class, tiny_model, tmp_path, callbacks=[Doctor(said.append)], **settings)
    live = {line.split(": ")[2] for line in said}
    first = {name: f"step {step}: " for name, step in expected.items()}
    assert all(any(line.startswith(start) for line in said) for start in first.values()), said
    assert len(said) == len({*said}) == len(live)
    trainer.state.save_to_json(str(tmp_path / "trainer_state.json"))
    found = Examination().add_all(read(tmp_path).lines).findings
    assert {name: finding.first_step for name, finding in found.items() if name in expected} == expected
    assert len(found) == len(said)


def test_a_sound_run_is_left_in_peace(tiny_model: Path, tmp_path: Path) -> None:
    said: list[str] = []
    long_enough = {"max_completion_length": 24, "max_steps": 6, "learning_rate": 1e-4}
    train(RLVRTrainer, tiny_model, tmp_path, callbacks=[Doctor(said.append)], **long_enough)
    assert said == []
