"""Rollout batches that a vLLM server writes ahead of training: its probabilities."""

from pathlib import Path
from typing import Any

import torch

from tests.trainer.step.engine.conftest import Served
from tests.trainer.step.engine.transformers_server import TransformersServer
from tests.trainer.step.test_lag import Noting, lines
from tests.trainer.training import train

SETTINGS: dict[str, Any] = {"max_steps": 5, "loss_type": "dapo", "temperature": 0.7}


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
