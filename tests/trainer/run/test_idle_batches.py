"""A run that trains nothing ends; one whose answers are all right, or a sweep's, goes on."""

import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transformers import TrainerControl

from evenkeel.trainer.command.train import main
from evenkeel.trainer.run.callbacks import IdleBatches
from tests.scripts.test_train import run_file

__all__ = ["run_file"]

ALIVE = {
    "advantage/mean_abs": 0.4,
    "groups/frac_unjudged": 0.0,
    "groups/frac_all_correct": 0.0,
    "completions/clipped_ratio": 0.5,
}
DEAD = {**ALIVE, "advantage/mean_abs": 0.0}
RIGHT = {**DEAD, "groups/frac_all_correct": 1.0}


def watched(
    batches: list[dict[str, float]], steps_per_block: int = 1, counts: Any = None
) -> tuple[str, int | None, Counter[str]]:
    """The last message of a run with these rollout batches, after which of them it ends, and what is counted."""
    metrics: dict[str, Any] = {}
    found: Counter[str] = Counter(counts or {})
    norms = [math.nan]
    callback = IdleBatches(metrics, found, lambda: norms[-1], steps_per_block)
    args: Any = SimpleNamespace()
    for number, batch in enumerate(batches):
        metrics["train"] = {name: [0.7, value] for name, value in batch.items() if name != "gradient"}
        for step in range(steps_per_block):
            norms.append(batch.get("gradient", 0.1 if batch.get("advantage/mean_abs") else 0.0))
            done = number * steps_per_block + step + 1
            state: Any = SimpleNamespace(global_step=done, max_steps=10_000, is_world_process_zero=True)
            control = TrainerControl()
            callback.on_step_end(args, state, control)
            metrics["train"] = {}  # logged
            assert control.should_training_stop == control.should_save == callback.ended
        if callback.ended:
            return callback.message(), number + 1, found
    return "", None, found


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run in this process leaves in the environment is no other test's."""
    for name in ("WANDB_DIR", "TENSORBOARD_LOGGING_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("batch", "words", "ends"),
    [
        (DEAD, "all rewards are equal", 20),
        ({**DEAD, "completions/clipped_ratio": 1.0}, "trl.max_completion_length", 20),
        ({**ALIVE, "groups/frac_unjudged": 1.0}, "could be scored", 20),
        ({**ALIVE, "gradient": 0.0}, "the advantages are not 0", 20),
        (RIGHT, "", None),
        ({**ALIVE, "completions/clipped_ratio": 1.0}, "", None),
    ],
)
def test_what_trains_nothing_ends_with_its_reason(batch: dict[str, float], words: str, ends: int | None) -> None:
    message, ended, _ = watched([batch] * 30, steps_per_block=3)
    assert ended == ends
    assert words in message


def test_a_batch_that_trains_begins_the_count_again() -> None:
    _, ended, counts = watched(([DEAD] * 19 + [ALIVE]) * 3)
    assert (ended, dict(counts)) == (None, {})


def test_a_resumed_run_goes_on_counting() -> None:
    _, ended, counts = watched([DEAD] * 12)
    assert ended is None
    _, ended, counts = watched([DEAD] * 12, counts=counts)
    assert ended == 8
    assert watched([RIGHT, *[DEAD] * 30], counts=counts)[1] == 21  # after its end for as many more


def test_a_cell_of_a_sweep_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_CELL", "somewhere")
    assert watched([DEAD] * 30)[1] is None


@pytest.mark.slow
def test_a_real_run_ends_with_a_checkpoint(run_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = "rewards.0.verifier=tests.scripts.one_valued_verifier:wrong"
    settings = [wrong, "trl.max_steps=24", "trl.save_steps=24", "evaluation.before=false"]
    assert main([str(run_file), *settings, "data.test=null"]) == 1
    said = capfd.readouterr().out
    assert "The run ended: for 20 rollout batches in a row" in said
    assert (tmp_path / "run" / "checkpoint-20" / "manifest.json").exists()
    assert not (tmp_path / "run" / "summary.json").exists()
