"""`logging.report_to`: every tracker of transformers, checked for being installed before a model is loaded."""

import os

import pytest
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from evenkeel.trainer.run.check.packages import _trackers
from evenkeel.trainer.run.config import ConfigError
from evenkeel.trainer.run.config.trackers import TRACKERS
from evenkeel.trainer.run.preflight import prepare_logging
from tests.trainer.run.config.test_config import load


def test_the_words_are_those_of_transformers():
    assert TRACKERS.keys() == INTEGRATION_TO_CALLBACK.keys()


def test_a_tracker_as_a_key_is_told_where_it_goes(tmp_path):
    with pytest.raises(ConfigError, match=r"report_to: \[mlflow\]"):
        load(tmp_path, "logging: {mlflow: true}\n")


def test_what_is_not_installed_is_an_error_with_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KUBEFLOW_TRAINER_SERVER_URL", raising=False)
    monkeypatch.setattr(
        "evenkeel.trainer.run.check.packages.find_spec", lambda module: "found" if module == "wandb" else None
    )
    monkeypatch.delenv("SWANLAB_MODE", raising=False)
    findings = list(_trackers(["wandb", "swanlab", "comet_ml", "kubeflow"]))
    found = [(each.severity, each.code) for each in findings]
    assert sorted(found) == [
        ("error", "tracker-not-installed"),
        ("error", "tracker-not-installed"),
        ("error", "tracker-without-server"),
        ("note", "tracker-variable"),
    ]
    said = "\n".join(each.text for each in findings)
    for value in (
        "pip install 'swanlab<0.8'",
        "pip install comet-ml",
        "KUBEFLOW_TRAINER_SERVER_URL",
        "SWANLAB_MODE=offline",
    ):
        assert value in said
    assert not list(_trackers("none"))


@pytest.mark.parametrize(("have", "taken"), [("0.7.20", True), ("0.8.0", False), ("0.10.3", False)])
def test_a_version_that_the_callback_cannot_write_to_is_an_error(have: str, taken: bool, monkeypatch):
    """swanlab 0.8 raises where transformers' callback asks whether a run is active."""
    monkeypatch.setattr("evenkeel.trainer.run.check.packages.find_spec", lambda module: "found")
    monkeypatch.setattr("evenkeel.trainer.run.check.packages.version", lambda package: have)
    found = [each for each in _trackers(["swanlab"]) if each.severity == "error"]
    assert [each.code for each in found] == ["tracker-version"] * (not taken)
    assert all(have in each.text and "pip install 'swanlab<0.8'" in each.text for each in found)


@pytest.mark.parametrize("mode", [None, "cloud"])
def test_a_tracker_keeps_from_the_network_unless_it_is_told_otherwise(
    mode: str | None, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    tracking = ("MLFLOW_DISABLE_TELEMETRY", "MLFLOW_EXPERIMENT_NAME", "SWANLAB_PROJECT", "SWANLAB_MODE")
    for variable in (*tracking, "WANDB_MODE", "WANDB_RUN_GROUP", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(variable, "")  # so that what the run sets is taken back
        monkeypatch.delenv(variable)
    if mode is not None:
        monkeypatch.setenv("SWANLAB_MODE", mode)
    prepare_logging(load(tmp_path, "logging: {report_to: [mlflow, swanlab]}\n"))
    names = ("MLFLOW_DISABLE_TELEMETRY", "MLFLOW_EXPERIMENT_NAME", "SWANLAB_MODE", "SWANLAB_PROJECT")
    assert [os.environ[name] for name in names] == ["true", "evenkeel", mode or "offline", "evenkeel"]
