"""The experiment trackers that transformers' callbacks write to: which package each needs, where it reads a project."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

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


@dataclass(frozen=True)
class Tracker:
    """What a tracker needs.

    Attributes:
        modules: any one of them → the package to install.
        project: environment variable in which its callback looks for the project; a run sets it to ``evenkeel`` unless
            it is set already.
        variable: environment variable without which its callback does nothing.
        local: environment variables that keep it from the network; a run sets them unless they are set already.
        below: the first version whose interface transformers' callback does not know.
    """

    modules: Mapping[str, str]
    project: str | None = None
    variable: str | None = None
    local: Mapping[str, str] = field(default_factory=dict)
    below: tuple[int, int] | None = None


_OWN: dict[str, Tracker] = {
    "azure_ml": Tracker({"azureml": "azureml-core"}),
    "clearml": Tracker({"clearml": "clearml"}, "CLEARML_PROJECT"),
    "comet_ml": Tracker({"comet_ml": "comet-ml"}, "COMET_PROJECT_NAME"),
    "flyte": Tracker({"flytekit": "flytekit"}),
    "kubeflow": Tracker({}, variable="KUBEFLOW_TRAINER_SERVER_URL"),
    "mlflow": Tracker({"mlflow": "mlflow"}, "MLFLOW_EXPERIMENT_NAME", local={"MLFLOW_DISABLE_TELEMETRY": "true"}),
    "swanlab": Tracker(
        {"swanlab": "'swanlab<0.8'"}, "SWANLAB_PROJECT", local={"SWANLAB_MODE": "offline"}, below=(0, 8)
    ),
    "tensorboard": Tracker({"tensorboard": "tensorboard", "tensorboardX": "tensorboard"}),
    "wandb": Tracker({"wandb": "wandb"}, "WANDB_PROJECT"),
}
TRACKERS = {name: _OWN.get(name, Tracker({name: name})) for name in get_args(TrackerName)}
"""Word of ``logging.report_to`` → what it needs; trackio takes its project from ``trl.project``."""
