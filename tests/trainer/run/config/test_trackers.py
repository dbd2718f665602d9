"""`logging.report_to`: every tracker of transformers, checked for being installed before a model is loaded."""

import os
from typing import get_args

import pytest
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from evenkeel.trainer.run.config.trackers import TrackerName
from evenkeel.trainer.run.preflight import prepare_logging
from tests.trainer.run.config.test_config import load


def test_the_words_are_those_of_transformers():
    assert {*get_args(TrackerName)} == {*INTEGRATION_TO_CALLBACK}


@pytest.mark.parametrize("mode", [None, "cloud"])
def test_a_tracker_keeps_from_the_network_unless_it_is_told_otherwise(
    mode: str | None, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    names = ("MLFLOW_DISABLE_TELEMETRY", "MLFLOW_EXPERIMENT_NAME", "SWANLAB_MODE", "SWANLAB_PROJECT")
    for variable in (*names, "WANDB_MODE", "WANDB_RUN_GROUP", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(variable, "")  # so that what the run sets is taken back
        monkeypatch.delenv(variable)
    if mode is not None:
        monkeypatch.setenv("SWANLAB_MODE", mode)
    prepare_logging(load(tmp_path, "logging: {report_to: [mlflow, swanlab]}\n"))
    assert [os.environ[name] for name in names] == ["true", "evenkeel", mode or "offline", "evenkeel"]
