"""The objects that TRL and peft want, made from a validated configuration. Imports both only when called."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainer.run.config.batch_plan import batch_plan
from trainer.run.config.problems import ConfigError, Problem
from trainer.run.config.quantization import bits_and_bytes
from trainer.run.config.schema import RunConfig

if TYPE_CHECKING:
    from peft import LoraConfig
    from transformers import BitsAndBytesConfig
    from trl import GRPOConfig

_MODEL_KEYS = ("revision", "dtype", "attn_implementation")


def grpo_config(config: RunConfig, world_size: int) -> "GRPOConfig":
    """``config`` as TRL's arguments: ``trl:`` verbatim, and what the other sections own.

    How the held-out rows are answered is no argument of TRL's (``evaluation.decodings``). Its completion log stays off,
    as ``logging`` says what is shown.

    Raises:
        ConfigError: impossible batch arithmetic, or TRL refuses a combination of arguments.
    """
    from trl import GRPOConfig

    return _arguments(GRPOConfig, config, world_size, {})


def planned_config(config: RunConfig, world_size: int, instead: Mapping[str, Any]) -> "GRPOConfig":
    """`grpo_config` of a run that is not started here: its ``world_size`` processes are taken to be there.

    Args:
        instead: arguments in the place of the file's, for what this machine lacks.
    """
    from trl import GRPOConfig

    planned = type("PlannedGRPOConfig", (GRPOConfig,), {"world_size": property(lambda _: world_size)})
    return _arguments(planned, config, world_size, instead)


def _arguments(kind: Any, config: RunConfig, world_size: int, instead: Mapping[str, Any]) -> "GRPOConfig":
    plan = batch_plan(config, world_size)
    owned: dict[str, Any] = {
        "output_dir": config.output_dir,
        "run_name": f"{config.name}-s{config.run_seed}",
        "seed": config.run_seed,
        "report_to": config.logging.report_to,
        "project": config.logging.project,
        "reward_weights": [reward.weight for reward in config.rewards],
        "trust_remote_code": config.model.trust_remote_code,
        "model_init_kwargs": _model_arguments(config),
        "eval_strategy": "no" if config.evaluation.every_steps is None else "steps",
        "eval_steps": config.evaluation.every_steps,
        "eval_on_start": config.evaluation.before and config.data.test is not None,
        "per_device_eval_batch_size": config.evaluation.batch_size,
        "num_generations_eval": 1,
        "metric_for_best_model": _tracked(config.evaluation.keep_best),
        "greater_is_better": None if config.evaluation.keep_best is None else True,
        "log_completions": False,
        "remove_unused_columns": False,
        "gradient_accumulation_steps": plan.gradient_accumulation_steps,
        "steps_per_generation": plan.steps_per_generation,
    }
    verbatim = {key: value for key, value in config.trl.items() if key != "generation_batch_size"}
    try:
        return kind(**{**verbatim, **owned, **instead})
    except ValueError as error:
        raise ConfigError([Problem("trl", f"TRL refuses these arguments: {error}", "Change what it names.")]) from error


def lora_config(config: RunConfig) -> "LoraConfig | None":
    """``model.lora`` as peft's configuration for a causal language model; ``None`` where the whole model is trained."""
    if config.model.lora is None:
        return None
    from peft import LoraConfig

    return LoraConfig(**{"task_type": "CAUSAL_LM", **config.model.lora})


def quantization_config(config: RunConfig) -> "BitsAndBytesConfig | None":
    """``model.quantization`` as transformers' configuration; ``None`` where nothing is quantized."""
    return bits_and_bytes(config.model.quantization)


def _tracked(keep_best: str | None) -> str | None:
    """The logged key of a metric ``eval/<dataset>/<name>``."""
    return None if keep_best is None else f"eval_{keep_best.removeprefix('eval/')}"


def _model_arguments(config: RunConfig) -> dict[str, Any] | None:
    given = {key: value for key in _MODEL_KEYS if (value := getattr(config.model, key)) is not None}
    return given or None
