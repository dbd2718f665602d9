"""The objects that TRL, peft and transformers want, made from a validated configuration; imported only when called."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from evenkeel.trainer.run.config.batch_plan import batch_plan
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.schema import RunConfig
from evenkeel.trainer.run.config.trl_arguments import quantization

if TYPE_CHECKING:
    from peft import LoraConfig
    from trl import GRPOConfig

_GENERATION = """max_completion_length temperature top_p top_k min_p repetition_penalty generation_kwargs
chat_template_kwargs cache_implementation pad_to_multiple_of use_transformers_continuous_batching
ds3_gather_for_generation cast_lm_head_to_fp32 bf16 fp16 tf32 use_cpu ddp_timeout"""
"""Keys of ``trl:`` that decide how completions are generated, besides those that begin with ``vllm_``."""


def grpo_config(config: RunConfig, world_size: int) -> "GRPOConfig":
    """``config`` as TRL's arguments: ``trl:`` verbatim, and what the other sections decide.

    How held-out rows are completed is not an argument of TRL's (``evaluation.decodings``). TRL's completion log is off:
    ``logging`` replaces it.

    Raises:
        Refusal: impossible batch arithmetic, or TRL refuses a combination of arguments.
    """
    from trl import GRPOConfig

    return _made(GRPOConfig, _training_arguments(config, world_size))


def planned_config(config: RunConfig, world_size: int, instead: Mapping[str, Any]) -> "GRPOConfig":
    """`grpo_config` as if ``world_size`` processes had been started, with arguments ``instead`` of the file's."""
    from trl import GRPOConfig

    planned = type("PlannedGRPOConfig", (GRPOConfig,), {"world_size": property(lambda _: world_size)})
    return _made(planned, {**_training_arguments(config, world_size), **instead})


def _training_arguments(config: RunConfig, world_size: int) -> dict[str, Any]:
    plan, best = batch_plan(config, world_size), config.evaluation.keep_best
    owned = {
        **_shared(config),
        "run_name": f"{config.name}-s{config.run_seed}",
        "output_dir": config.output_dir,
        "report_to": config.logging.report_to,
        "eval_strategy": "no" if config.evaluation.every_steps is None else "steps",
        "eval_steps": config.evaluation.every_steps,
        "eval_on_start": config.evaluation.before and config.data.test is not None,
        "per_device_eval_batch_size": config.evaluation.batch_size,
        "metric_for_best_model": None if best is None else f"eval_{best.removeprefix('eval/')}",
        "greater_is_better": None if best is None else True,
        "log_completions": False,
        "gradient_accumulation_steps": plan.gradient_accumulation_steps,
        "steps_per_generation": plan.steps_per_generation,
    }
    verbatim = {key: value for key, value in config.trl.items() if key != "generation_batch_size"}
    return {**verbatim, **owned}


def evaluation_arguments(config: RunConfig, output_dir: str) -> "GRPOConfig":
    """The arguments of ``trl:`` for generation and none for training, so that any run's file can be evaluated.

    vLLM generates if it is installed, there is a CUDA device and the file does not say ``use_vllm: false``; else
    transformers does, without such a device on the CPU in the model's own precision.
    """
    import torch
    from trl import GRPOConfig

    given = {key: value for key, value in config.trl.items() if key in _GENERATION.split() or key.startswith("vllm_")}
    if torch.cuda.is_available():
        given["use_vllm"] = find_spec("vllm") is not None and config.trl.get("use_vllm", True)
        given.setdefault("vllm_mode", "colocate")
    else:
        given |= {"use_cpu": True, "bf16": False, "fp16": False}
    size = config.evaluation.batch_size
    owned = {
        **_shared(config),
        "output_dir": output_dir,
        "per_device_eval_batch_size": size,
        "per_device_train_batch_size": size + size % 2,  # vLLM serves as many sequences at once
        "gradient_accumulation_steps": 1,
        "num_generations": 2,
        "beta": 0.0,
        "report_to": "none",
        "save_strategy": "no",
        "gradient_checkpointing": False,
    }
    return _made(GRPOConfig, {**given, **owned})


def _shared(config: RunConfig) -> dict[str, Any]:
    model = config.model
    loading = model.model_dump(include={"revision", "dtype", "attn_implementation"}, exclude_none=True)
    return {
        "seed": config.run_seed,
        "num_generations_eval": 1,
        "reward_weights": [reward.weight for reward in config.rewards],
        "trust_remote_code": model.trust_remote_code,
        "model_init_kwargs": loading or None,
        "remove_unused_columns": False,
    }


def _made(kind: type["GRPOConfig"], arguments: dict[str, Any]) -> "GRPOConfig":
    try:
        return kind(**arguments)
    except (ValueError, ImportError) as error:
        what = f"TRL refuses these arguments: {error}"
        raise config_error("refused-by-trl", "trl", what, "Change what it names.") from error


def lora_config(config: RunConfig) -> "LoraConfig | None":
    """``model.lora`` as peft's configuration for a causal language model; ``None`` where the whole model is trained.

    Raises:
        Refusal: peft leaves a value, or a key of one of its mappings, out in silence.
    """
    if config.model.lora is None:
        return None
    from peft import LoraConfig

    made = LoraConfig(**{"task_type": "CAUSAL_LM", **config.model.lora})
    for name, given in config.model.lora.items():
        held = getattr(made, name)
        read = held if isinstance(held, dict) else getattr(held, "__dict__", {})
        unread = given.keys() - read if isinstance(given, dict) else {repr(given)} if given and not held else set()
        if unread:
            what = f"holds {', '.join(sorted(unread))}, which peft would not read."
            raise config_error("unknown-key", f"model.lora.{name}", what, "Leave it out.")
    return made


def quantization_config(config: RunConfig) -> Any:
    """``model.quantization`` as transformers' configuration; ``None`` where nothing is quantized."""
    return None if config.model.quantization is None else quantization(config.model.quantization)
