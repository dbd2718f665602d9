"""The YAML file of a run: read, merged, validated, and handed to TRL."""

from evenkeel.trainer.run.config.batch_plan import BatchPlan, batch_plan
from evenkeel.trainer.run.config.data_section import Columns, Source
from evenkeel.trainer.run.config.loading import load_config, local_path
from evenkeel.trainer.run.config.schema import RunConfig
from evenkeel.trainer.run.config.trl_config import (
    evaluation_arguments,
    grpo_config,
    lora_config,
    planned_config,
    quantization_config,
)

__all__ = [
    "BatchPlan",
    "Columns",
    "RunConfig",
    "Source",
    "batch_plan",
    "evaluation_arguments",
    "grpo_config",
    "load_config",
    "local_path",
    "lora_config",
    "planned_config",
    "quantization_config",
]
