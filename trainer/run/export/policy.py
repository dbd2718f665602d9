"""The policy of a checkpoint, as the trainer held it: whole, with its adapter, or put together from shards."""

import tempfile
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import quantization_config
from evenkeel.trainer.run.export.source import Source
from evenkeel.trainer.run.record.manifest import model_files

DTYPES = ("float32", "bfloat16", "float16")
_WEIGHTS = (".safetensors", ".bin", "commit")


def load_policy(source: Source, base: str | None = None) -> Any:
    """The policy in evaluation mode, in the precision that it was trained in.

    Of an adapter the base model is the one that was trained on, dequantized where it was quantized: what QLoRA trains
    is an adapter of the *quantized* weights, and merged into the original ones it is another policy.

    Args:
        base: where the base model of an adapter, or the configuration of sharded weights, lies now, if it has moved.

    Raises:
        Refusal: the base cannot be opened or is not the one of the run, or shards cannot be put together.
    """
    from transformers import AutoModelForCausalLM

    form, model = source.form, source.config.model
    if form == "model":
        policy = AutoModelForCausalLM.from_pretrained(
            source.checkpoint, dtype="auto", trust_remote_code=model.trust_remote_code
        )
    else:
        load = _adapted if form == "adapter" else _assembled
        policy = load(source, base or model.name_or_path)
    return policy.eval()


def merged(policy: Any, dtype: str | None) -> Any:
    """The policy in ``dtype`` (``None`` = its own), its adapter merged into the weights."""
    import torch

    if dtype is not None:
        policy = policy.to(getattr(torch, dtype))
    return policy.merge_and_unload() if hasattr(policy, "merge_and_unload") else policy


def _adapted(source: Source, base: str) -> Any:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = source.config.model
    loading: dict[str, Any] = {"quantization_config": quantization_config(source.config)}
    loading["attn_implementation"] = model.attn_implementation
    files = source.record["model_files"], model_files(base, model.revision)
    trained_on, now = ({n: v for n, v in each.items() if n.endswith(_WEIGHTS)} for each in files)
    if trained_on and now and trained_on != now:
        raise Refusal(f"{base} holds other weights than {source.run.path} was trained on. Name those with --base.")
    policy = AutoModelForCausalLM.from_pretrained(
        base,
        revision=model.revision,
        dtype=model.dtype or "float32",  # TRL's default
        trust_remote_code=model.trust_remote_code,
        **{name: value for name, value in loading.items() if value is not None},
    )
    if model.quantization is not None:
        policy = policy.dequantize()
    return PeftModel.from_pretrained(policy, source.checkpoint)


def _assembled(source: Source, base: str) -> Any:
    """The model from the shards of DeepSpeed or FSDP, in float32 as they hold it."""
    from transformers import AutoConfig, AutoModelForCausalLM

    checkpoint, model = source.checkpoint, source.config.model
    if model.lora is not None:
        raise Refusal(
            f"{checkpoint} holds the shards of a model with a LoRA adapter, and no adapter_model.safetensors. Resume "
            "it for one step with whole weights (FSDP: fsdp_state_dict_type: FULL_STATE_DICT; ZeRO-3: "
            "zero3_save_16bit_model: true), and export that checkpoint."
        )
    config = AutoConfig.from_pretrained(base, revision=model.revision, trust_remote_code=model.trust_remote_code)
    weights = _zero_weights(checkpoint) if source.form == "zero" else _fsdp_weights(checkpoint)
    policy = AutoModelForCausalLM.from_config(config, dtype=next(iter(weights.values())).dtype)
    missing, unexpected = policy.load_state_dict(weights, strict=False)
    tied = {*(policy.all_tied_weights_keys or {})}
    if lost := [name for name in missing if name not in tied] + list(unexpected):
        raise Refusal(
            f"The shards in {checkpoint} do not fit the architecture of {base}: {', '.join(lost[:5])}. Say with "
            "--base which model was trained."
        )
    policy.tie_weights()
    return policy


def _zero_weights(checkpoint: Path) -> dict[str, Any]:
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

    weights: dict[str, Any] = get_fp32_state_dict_from_zero_checkpoint(str(checkpoint))
    return weights


def _fsdp_weights(checkpoint: Path) -> dict[str, Any]:
    """The whole weights from FSDP's SHARDED_STATE_DICT; accelerate writes them to disk, where they are needed twice."""
    from accelerate.utils import merge_fsdp_weights
    from safetensors.torch import load_file

    shards = sorted(checkpoint.glob("pytorch_model_fsdp_*"))[0]
    with tempfile.TemporaryDirectory(dir=checkpoint.parent) as folder:
        merge_fsdp_weights(str(shards), folder, safe_serialization=True)
        return {name: value for file in Path(folder).glob("*.safetensors") for name, value in load_file(file).items()}
