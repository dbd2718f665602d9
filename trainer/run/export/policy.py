"""The policy of a checkpoint, as the trainer held it: whole, under its adapter, or put together from shards."""

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trainer.run.config import quantization_config
from trainer.run.export.source import ExportError, Source
from trainer.run.manifest import model_fingerprint

DTYPES = ("float32", "bfloat16", "float16")


def load_policy(source: Source, base: str | None = None) -> Any:
    """The policy in evaluation mode, in the precision that it was trained in.

    Of an adapter the model beneath is the one that was trained on, dequantized where it was quantized: what QLoRA
    trains is an adapter of the *quantized* weights, and merged into the original ones it is another policy.

    Args:
        base: where the model beneath an adapter, or the configuration of sharded weights, lies now, if it has moved.

    Raises:
        ExportError: the base cannot be opened or is not the one of the run, or shards cannot be put together.
    """
    form = source.form
    if form == "model":
        policy = _model_class().from_pretrained(
            source.checkpoint, dtype="auto", trust_remote_code=source.config.model.trust_remote_code
        )
    elif form == "adapter":
        policy = _adapted(source, base or source.config.model.name_or_path)
    else:
        _refuse_sharded_adapter(source)
        policy = _assembled(source, base or source.config.model.name_or_path)
    return policy.eval()


def merged(policy: Any, dtype: str | None) -> Any:
    """The policy in ``dtype`` (``None`` = its own), its adapter merged into the weights."""
    import torch

    if dtype is not None:
        policy = policy.to(getattr(torch, dtype))
    return policy.merge_and_unload() if hasattr(policy, "merge_and_unload") else policy


def _model_class() -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM


def _adapted(source: Source, base: str) -> Any:
    from peft import PeftModel

    model = source.config.model
    quantization = quantization_config(source.config)
    loading = {} if quantization is None else {"quantization_config": quantization}
    if model.attn_implementation is not None:
        loading["attn_implementation"] = model.attn_implementation
    _check_base(source, base)
    try:
        beneath = _model_class().from_pretrained(
            base,
            revision=model.revision,
            dtype=model.dtype or "float32",  # TRL's default
            trust_remote_code=model.trust_remote_code,
            **loading,
        )
    except (OSError, ValueError) as error:
        raise _unopened(base, error) from error
    if quantization is not None:
        beneath = beneath.dequantize()
    return PeftModel.from_pretrained(beneath, source.checkpoint)


def _check_base(source: Source, base: str) -> None:
    """Refuse weights that the adapter was not trained on, where it is known which those were."""
    trained_on = source.record.get("model_fingerprint")
    now = model_fingerprint(base, source.config.model.revision)
    if None not in (trained_on, now) and trained_on != now:
        raise ExportError(
            f"{base} holds other weights than {source.run} was trained on ({str(trained_on)[:12]}…, now "
            f"{str(now)[:12]}…), and merged into them the adapter would be another policy. Bring those weights back, "
            "or say with --base where they are now."
        )


def _unopened(base: str, error: Exception) -> ExportError:
    return ExportError(
        f"{base!r} cannot be opened: {str(error).splitlines()[0]} Say with --base where the model that was trained "
        "lies now, or what its hub id is."
    )


def _refuse_sharded_adapter(source: Source) -> None:
    if source.config.model.lora is not None:
        raise ExportError(
            f"{source.checkpoint} holds the shards of a model with a LoRA adapter, and no adapter_model.safetensors. "
            "Go on from it with the launcher that wrote it, for one step and with whole weights (FSDP: "
            "fsdp_state_dict_type: FULL_STATE_DICT; ZeRO-3: zero3_save_16bit_model: true), and export that checkpoint."
        )


def _assembled(source: Source, base: str) -> Any:
    """The model from the shards of DeepSpeed or FSDP, in float32 as they hold it."""
    from transformers import AutoConfig

    model = source.config.model
    try:
        config = AutoConfig.from_pretrained(base, revision=model.revision, trust_remote_code=model.trust_remote_code)
    except (OSError, ValueError) as error:
        raise _unopened(base, error) from error
    state = _zero_weights(source.checkpoint) if source.form == "zero" else _fsdp_weights(source.checkpoint)
    policy = _model_class().from_config(config, dtype=next(iter(state.values())).dtype)
    missing, unexpected = policy.load_state_dict(state, strict=False)
    tied = {*(policy.all_tied_weights_keys or {})}
    if lost := [name for name in missing if name not in tied] + list(unexpected):
        raise ExportError(
            f"The shards in {source.checkpoint} do not fit the architecture of {base}: {', '.join(lost[:5])}. Say with "
            "--base which model was trained."
        )
    policy.tie_weights()
    return policy


def _zero_weights(checkpoint: Path) -> dict[str, Any]:
    if find_spec("deepspeed") is None:
        raise ExportError(
            f"{checkpoint} holds the shards of DeepSpeed's ZeRO, which take DeepSpeed to be put together. Install it "
            '(pip install -e ".[deepspeed]" -c constraints.txt) and export again. By hand:\n'
            f"  python {checkpoint / 'zero_to_fp32.py'} {checkpoint} {checkpoint} --safe_serialization"
        )
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

    state: dict[str, Any] = get_fp32_state_dict_from_zero_checkpoint(str(checkpoint))
    return state


def _fsdp_weights(checkpoint: Path) -> dict[str, Any]:
    """The whole weights from FSDP's SHARDED_STATE_DICT; accelerate writes them to disk, where they are needed twice."""
    from accelerate.utils import merge_fsdp_weights
    from safetensors.torch import load_file

    shards = sorted(checkpoint.glob("pytorch_model_fsdp_*"))[0]
    with tempfile.TemporaryDirectory(dir=checkpoint.parent) as folder:
        merge_fsdp_weights(str(shards), folder, safe_serialization=True)
        state: dict[str, Any] = {}
        for file in sorted(Path(folder).glob("*.safetensors")):
            state |= load_file(file)
    return state
