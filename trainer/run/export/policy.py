"""The policy of a checkpoint, as the trainer held it: whole, or with its adapter."""

from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import RunConfig, quantization_config
from evenkeel.trainer.run.export.source import Source
from evenkeel.trainer.run.record.manifest import model_files

DTYPES = ("float32", "bfloat16", "float16")
_WEIGHTS = (".safetensors", ".bin", "commit")


def load_policy(source: Source, base: str | None = None) -> Any:
    """The policy in evaluation mode, in the precision that it was trained in.

    An adapter's base model is the one that it was trained on, dequantized if it was quantized: QLoRA trains an adapter
    of the *quantized* weights, and merged into the original ones it is another policy. ``base`` is where it lies now,
    if it has moved; a `Refusal` where it is not the one of the run.
    """
    from transformers import AutoModelForCausalLM

    model = source.run.config.model
    if not source.is_adapter:
        return AutoModelForCausalLM.from_pretrained(
            source.checkpoint, dtype="auto", trust_remote_code=model.trust_remote_code
        ).eval()
    base = base or model.name_or_path
    files = source.record["model_files"], model_files(base, model.revision)
    trained_on, now = ({n: v for n, v in each.items() if n.endswith(_WEIGHTS)} for each in files)
    if trained_on and now and trained_on != now:
        raise Refusal(f"{base} holds other weights than {source.run.path} was trained on. Name those with --base.")
    return adapted(source.run.config, base, source.checkpoint).eval()


def merged(policy: Any, dtype: str | None) -> Any:
    """The policy in ``dtype`` (``None`` = its own), its adapter merged into the weights."""
    import torch

    if dtype is not None:
        policy = policy.to(getattr(torch, dtype))
    return policy.merge_and_unload() if hasattr(policy, "merge_and_unload") else policy


def adapted(config: RunConfig, base: str, adapter: Path | str) -> Any:
    """The adapter on its base model, in the dtype and with the quantized values that it was trained with."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = config.model
    loading = {"quantization_config": quantization_config(config), "attn_implementation": model.attn_implementation}
    policy = AutoModelForCausalLM.from_pretrained(
        base,
        revision=model.revision,
        dtype=model.dtype or "float32",  # TRL's default
        trust_remote_code=model.trust_remote_code,
        **{name: value for name, value in loading.items() if value is not None},
    )
    if model.quantization is not None:
        policy = policy.dequantize()
    return PeftModel.from_pretrained(policy, adapter)
