"""The experiment trackers that transformers' callbacks write to, and the variables that a run sets for them."""

from typing import Literal

TrackerName = Literal[
    "azure_ml",
    "clearml",
    "codecarbon",
    "comet_ml",
    "dagshub",
    "dvclive",
    "flyte",
    "kubeflow",
    "mlflow",
    "neptune",
    "swanlab",
    "tensorboard",
    "trackio",
    "wandb",
]

VARIABLES: dict[str, dict[str, str]] = {
    "clearml": {"CLEARML_PROJECT": "evenkeel"},
    "comet_ml": {"COMET_PROJECT_NAME": "evenkeel"},
    "mlflow": {"MLFLOW_EXPERIMENT_NAME": "evenkeel", "MLFLOW_DISABLE_TELEMETRY": "true"},
    "swanlab": {"SWANLAB_PROJECT": "evenkeel", "SWANLAB_MODE": "offline"},
    "wandb": {"WANDB_PROJECT": "evenkeel"},
}
"""Tracker → environment variables that a run sets where they are unset: the project, and what keeps it local."""
