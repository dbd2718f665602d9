"""A run that trains nothing says so and ends; one whose answers are all right, or a sweep's, goes on."""

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
    "rewards/judge/mean": 0.3,
    "rewards/judge/std": 0.4,
}
DEAD = {**ALIVE, "advantage/mean_abs": 0.0, "rewards/judge/mean": 0.0, "rewards/judge/std": 0.0}
RIGHT = {**DEAD, "groups/frac_all_correct": 1.0, "rewards/judge/mean": 1.0}
CUT_OFF = {**ALIVE, "completions/clipped_ratio": 1.0}
SECOND = {**ALIVE, "rewards/format/mean": 0.2, "rewards/format/std": 3e-9}


def watched(
    batches: list[dict[str, float]], steps_per_block: int = 1, counts: Any = None
) -> tuple[list[str], int | None, Counter[str]]:
    """The lines that are said of these rollout batches, after which of them the run ends, and what is counted."""
    metrics: dict[str, Any] = {}
    found: Counter[str] = Counter(counts or {})
    norms = [math.nan]
    said: list[str] = []
    callback = IdleBatches(metrics, found, lambda: norms[-1], steps_per_block, said.append)
    args: Any = SimpleNamespace(max_completion_length=8)
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
            return said, number + 1, found
    return said, None, found


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run in this process leaves in the environment is no other test's."""
    for name in ("WANDB_DIR", "TENSORBOARD_LOGGING_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("batch", "words", "ends"),
    [
        (DEAD, "No gradient for 5 rollout batches, so nothing is trained: judge gave 0 to every completion", 20),
        ({**DEAD, "completions/clipped_ratio": 1.0}, "cut off at trl.max_completion_length = 8", 20),
        ({**ALIVE, "gradient": 0.0}, "the advantages are not 0, but what they multiply is", 20),
        (RIGHT, "All answers of the last 5 rollout batches are right", None),
        (CUT_OFF, "every completion was cut off at trl.max_completion_length = 8: none was ended", None),
        (SECOND, "format gave 0.2 to every completion of the last 5 rollout batches", None),
    ],
)
def test_each_reason_is_said_once_and_what_trains_nothing_ends(
    batch: dict[str, float], words: str, ends: int | None
) -> None:
    assert watched([batch] * 4, steps_per_block=3)[0] == []
    said, ended, _ = watched([batch] * 30, steps_per_block=3)
    assert (len(said), ended) == (1, ends)
    assert words in said[0]
    assert said[0].startswith("step 15: ")


def test_a_batch_that_trains_begins_the_count_again() -> None:
    said, ended, counts = watched(([DEAD] * 4 + [ALIVE]) * 12)
    assert (said, ended, dict(counts)) == ([], None, {})
    said, ended, _ = watched(([DEAD] * 6 + [ALIVE]) * 3)
    assert (len(said), ended) == (3, None)


def test_a_resumed_run_goes_on_counting() -> None:
    _, ended, counts = watched([DEAD] * 12)
    assert ended is None
    said, ended, counts = watched([DEAD] * 12, counts=counts)
    assert (said, ended) == ([], 8)
    assert watched([RIGHT, *[DEAD] * 30], counts=counts)[1] == 21  # after its end for as many more


def test_a_cell_of_a_sweep_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_CELL", "somewhere")
    said, ended, _ = watched([DEAD] * 30)
    assert (len(said), ended) == (1, None)


@pytest.mark.slow
def test_a_real_run_ends_with_a_checkpoint(run_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = "rewards.0.verifier=tests.scripts.one_valued_verifier:wrong"
    settings = [wrong, "trl.max_steps=24", "trl.save_steps=24", "evaluation.before=false"]
    assert main([str(run_file), *settings, "data.test=null"]) == 1
    said = capfd.readouterr().out
    assert "step 5: No gradient for 5 rollout batches, so nothing is trained: wrong gave 0 to every completion" in said
    assert "The run ended: for 20 rollout batches in a row" in said
    assert (tmp_path / "run" / "checkpoint-20" / "manifest.json").exists()
    assert not (tmp_path / "run" / "summary.json").exists()
