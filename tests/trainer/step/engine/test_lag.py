"""Rollout batches that a vLLM server writes while older ones are trained: its probabilities, and the same run."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import TrainerCallback

from tests.trainer.step.engine.conftest import Served
from tests.trainer.step.engine.transformers_server import TransformersServer
from tests.trainer.step.test_lag import Noting, lines
from tests.trainer.training import PROMPTS, max_difference, train

SETTINGS: dict[str, Any] = {"max_steps": 5, "loss_type": "dapo", "temperature": 0.7}
SAVING = {"save_strategy": "steps", "save_steps": 3}


class Evaluating(Noting):
    """Answers held-out rows after the second step."""

    def _maybe_log_save_evaluate(self, *positional: Any, **keywords: Any) -> None:
        super()._maybe_log_save_evaluate(*positional, **keywords)
        if self.state.global_step == 2:
            self.evaluate(Dataset.from_list(PROMPTS))


class Steps(TrainerCallback):
    """Tells others when a step was made."""

    def __init__(self) -> None:
        self.made, self.number = threading.Condition(), 0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        with self.made:
            self.number = state.global_step
            self.made.notify_all()

    def before(self, complete: Any, engine: TransformersServer) -> Any:
        """The engine's answers, of which that to the fourth rollout batch waits for the second optimizer step."""

        def late(body: dict[str, Any]) -> Any:
            if sum("seed" not in each for each in engine.requests) == 3 and "seed" not in body:
                with self.made:
                    assert self.made.wait_for(lambda: self.number >= 2, 60)
            return complete(body)

        return late


def trained(served: Served, folder: Path, overlaps: bool, **settings: Any) -> Any:
    strategies = {"staleness": 2, "overlap_generation": overlaps, "agreement_bound": None}
    given = {**served.settings, **SETTINGS, **settings}
    return train(Evaluating, served.model, folder, strategies={**strategies, "token_weight": "adv_reweight"}, **given)


def test_what_the_server_writes_beside_training_is_what_it_writes_before(
    served: Served, engine: TransformersServer, tmp_path: Path, monkeypatch: Any
):
    """Weights, logs and requests, over an evaluation and a checkpoint, from which a run goes on."""
    one = trained(served, tmp_path / "before", False, **SAVING)
    asked = [*engine.requests]
    engine.start()
    engine.requests.clear()
    steps = Steps()
    monkeypatch.setattr(engine, "_completions", steps.before(engine._completions, engine))
    other = trained(served, tmp_path / "beside", True, callbacks=[steps], **SAVING)
    monkeypatch.undo()
    assert asked == engine.requests
    assert max_difference(one, other) == 0.0
    assert lines(one)[:-1] == lines(other)[:-1]
    assert [seen[:3] for seen in one.seen] == [seen[:3] for seen in other.seen]
    assert [seen[:2] for seen in other.seen] == [(0, 0), (1, 0), (2, 0), (3, 1), (4, 2)]
    checkpoint = str(tmp_path / "beside" / "checkpoint-3")
    resumed = trained(served, tmp_path / "resumed", True, resume_from_checkpoint=checkpoint, **SAVING)
    assert max_difference(one, resumed) == 0.0  # all was written before the checkpoint
    assert "seen" not in vars(resumed)


def test_the_old_policy_is_what_the_server_says(served: Served, engine: TransformersServer, tmp_path: Path):
    """Also with one optimizer step a batch, where TRL would score it for a ratio against the server's."""
    engine.raw_logprobs = True  # other numbers than the trainer's
    settings = {**served.settings, **SETTINGS, "max_steps": 2, "loss_type": "cispo"}
    strategies = {"staleness": 1, "coefficient": "importance_ratio"}
    trainer = train(Noting, served.model, tmp_path, strategies=strategies, **settings)
    for *_, batch in trainer.seen:
        assert torch.equal(batch["old_per_token_logps"], batch["sampling_per_token_logps"])
        assert "importance_sampling_ratio" not in batch
    first = lines(trainer)[0]
    assert first["lag/ratio/max"] > 1.01  # the first batch too: its ratio is against the server
    assert not [name for name in first if name.startswith(("sampling/", "rounding/"))]


def test_a_server_that_fails_fails_the_run(
    served: Served, engine: TransformersServer, tmp_path: Path, monkeypatch: Any
):
    complete, full = engine._completions, (400, {"error": "no memory"})
    monkeypatch.setattr(engine, "_completions", lambda body: full if len(engine.requests) > 3 else complete(body))
    with pytest.raises(Exception, match="no memory"):
        trained(served, tmp_path, True)
