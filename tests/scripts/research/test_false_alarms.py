"""The program that counts false alarms: its run files are accepted, and it counts what the logs show."""

import json
from pathlib import Path

import pytest

from evenkeel.trainer.run.config import load_config
from scripts.research.__main__ import main
from scripts.research.false_alarms import CONFIG, SHORT, VARIANTS
from tests.paths import ROOT


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_a_run_file(variant: str) -> None:
    config = load_config(ROOT / CONFIG, [f"{key}={value}" for key, value in {**SHORT, **VARIANTS[variant]}.items()])
    assert config.trl["max_steps"] == 12


def test_what_the_tuned_half_shows_and_the_alarms_of_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in VARIANTS:
        for seed in (0, 1):
            rate = 0.0 if (name, seed) == ("rloo", 1) else 1e-6
            lines = [{"step": n, "reward": 0.5, "learning_rate": rate, "entropy": 0.5 - n / 100} for n in range(1, 13)]
            (tmp_path / f"{name}-s{seed}").mkdir()
            (tmp_path / f"{name}-s{seed}" / "trainer_state.json").write_text(json.dumps({"log_history": lines}))
    assert main(["false_alarms", "--output", str(tmp_path), "--seeds", "2"]) == 0
    said = capsys.readouterr().out
    assert "| smallest entropy, as a share of the start | 0.851 |" in said  # the medians are .40 and .47
    assert "False alarms on 15 healthy runs, seeds 0 to 0, tuned on: 0\n" in said
    assert "False alarms on 15 healthy runs, seeds 1 to 1, not tuned on: 1\nrloo-s1: learning-rate-zero, step 3" in said
