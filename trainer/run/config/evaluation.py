"""The arguments of an evaluation without training."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from trainer.run.config.problems import ConfigError, Problem
from trainer.run.config.schema import RunConfig

if TYPE_CHECKING:
    from trl import GRPOConfig

_GENERATION = (
    "max_completion_length",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "generation_kwargs",
    "chat_template_kwargs",
    "cache_implementation",
    "pad_to_multiple_of",
    "use_transformers_continuous_batching",
    "ds3_gather_for_generation",
    "cast_lm_head_to_fp32",
    "bf16",
    "fp16",
    "tf32",
    "use_cpu",
    "ddp_timeout",
)
"""What of ``trl:`` says how completions are generated; everything named ``vllm_…`` does too."""


def evaluation_arguments(config: RunConfig, output_dir: str) -> "GRPOConfig":
    """Of ``trl:`` what generates, and nothing of what trains, so that any run's file can be evaluated.

    vLLM generates if it is installed beside a CUDA device and the file does not say ``use_vllm: false``, else
    transformers; without such a device, on the CPU in the model's own precision.

    Raises:
        ConfigError: TRL refuses a combination of arguments.
    """
    import torch
    from trl import GRPOConfig

    given = {key: value for key, value in config.trl.items() if key in _GENERATION or key.startswith("vllm_")}
    if torch.cuda.is_available():
        given["use_vllm"] = find_spec("vllm") is not None and config.trl.get("use_vllm", True)
        given.setdefault("vllm_mode", "colocate")
    else:
        given |= {"use_cpu": True, "bf16": False, "fp16": False}
    model = config.model
    loading = {"revision": model.revision, "dtype": model.dtype, "attn_implementation": model.attn_implementation}
    size = config.evaluation.batch_size
    owned: dict[str, Any] = {
        "output_dir": output_dir,
        "seed": config.run_seed,
        "per_device_eval_batch_size": size,
        "per_device_train_batch_size": size + size % 2,  # vLLM serves as many sequences at once
        "gradient_accumulation_steps": 1,
        "num_generations": 2,
        "num_generations_eval": 1,
        "beta": 0.0,
        "reward_weights": [reward.weight for reward in config.rewards],
        "trust_remote_code": model.trust_remote_code,
        "model_init_kwargs": {key: value for key, value in loading.items() if value is not None} or None,
        "report_to": "none",
        "save_strategy": "no",
        "gradient_checkpointing": False,
        "remove_unused_columns": False,
    }
    try:
        return GRPOConfig(**{**given, **owned})
    except ValueError as error:
        raise ConfigError([Problem("trl", f"TRL refuses these arguments: {error}", "Change what it names.")]) from error
