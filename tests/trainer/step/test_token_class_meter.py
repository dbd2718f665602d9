"""Entropies by class add up to TRL's own entropy, and change nothing that is trained."""

from pathlib import Path
from typing import Any

import pytest

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.algorithms.token_classes import CLASSES
from evenkeel.trainer.step.options import Guards
from tests.trainer.training import max_difference, train


@pytest.mark.parametrize("strategies", [{}, {"microbatches": "planned"}], ids=["trl", "planned"])
def test_classes_are_logged_and_nothing_else_changes(tiny_model: Path, tmp_path: Path, strategies: dict[str, Any]):
    settings = {"max_steps": 2, "strategies": strategies}
    plain = train(RLVRTrainer, tiny_model, tmp_path / "plain", **settings)
    settings["strategies"] = {**strategies, "guards": Guards(tmp_path / "faults")}  # in runs entropies are measured
    metered = train(RLVRTrainer, tiny_model, tmp_path / "metered", **settings)
    assert max_difference(plain, metered) == 0
    logged = [line for line in metered.state.log_history if "entropy" in line]
    assert logged
    for line in logged:
        found = [line[f"entropy/{name}"] for name in CLASSES if f"entropy/{name}" in line]
        assert len(found) >= 3
        assert min(found) - 1e-6 <= line["entropy"] <= max(found) + 1e-6
