"""`logging.report_to`: every tracker of transformers, checked for being installed before a model is loaded."""

import pytest
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from tests.trainer.run.config.test_config import load
from trainer.run.check.packages import _trackers
from trainer.run.config import ConfigError
from trainer.run.config.trackers import TRACKERS


def test_the_words_are_those_of_transformers():
    assert TRACKERS.keys() == INTEGRATION_TO_CALLBACK.keys()


@pytest.mark.parametrize("name", sorted(TRACKERS))
def test_each_is_taken(name: str, tmp_path):
    assert load(tmp_path, f"logging: {{report_to: [{name}]}}\n").logging.report_to == [name]


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("comet", "comet_ml"), ("azureml", "azure_ml"), ("tensorboardX", "tensorboard"), ("trackoi", "trackio")],
)
def test_a_near_miss_is_named(wrong: str, meant: str, tmp_path):
    with pytest.raises(ConfigError, match=f"Did you mean {meant}"):
        load(tmp_path, f"logging: {{report_to: [{wrong}]}}\n")


def test_a_tracker_as_a_key_is_told_where_it_goes(tmp_path):
    with pytest.raises(ConfigError, match=r"report_to: \[mlflow\]"):
        load(tmp_path, "logging: {mlflow: true}\n")


def test_what_is_not_installed_is_an_error_with_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KUBEFLOW_TRAINER_SERVER_URL", raising=False)
    monkeypatch.setattr("trainer.run.check.packages.find_spec", lambda module: "found" if module == "wandb" else None)
    found = [each.text for each in _trackers(["wandb", "swanlab", "comet_ml", "kubeflow"])]
    assert len(found) == 3
    assert "names swanlab, whose package is not installed: pip install swanlab" in found[0]
    assert "pip install comet-ml" in found[1]
    assert "KUBEFLOW_TRAINER_SERVER_URL is not set" in found[2]
    assert not list(_trackers("none"))
