"""The model's configuration, shape and names of weights, without the weights."""

from contextlib import AbstractContextManager
from copy import deepcopy
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.check.memory import ModelSize
from evenkeel.trainer.run.config import RunConfig, lora_config
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.tokenizer import folder_fault

_MODEL = "model.name_or_path"


def model_settings(config: RunConfig) -> Any:
    """The configuration of ``model.name_or_path``, of a vision-language model the whole one; else a `Refusal`."""
    from transformers import AutoConfig
    from transformers.models.auto import modeling_auto as known

    from evenkeel.trainer.run.data.sources import use_offline_mode

    model = config.model
    if (fault := folder_fault(model.name_or_path)) is not None:
        raise fault
    if not Path(model.name_or_path).exists():
        use_offline_mode()
    try:
        settings = AutoConfig.from_pretrained(
            model.name_or_path, revision=model.revision, trust_remote_code=model.trust_remote_code
        )
    except Exception as fault:  # each class of models rejects values of a config.json in its own way
        first = (str(fault).strip() or type(fault).__name__).splitlines()[0]
        what = f"is {model.name_or_path!r}, which cannot be read: {first}"
        raise config_error("unreadable-model", _MODEL, what) from fault
    names = settings.architectures or []
    own = "AutoModelForCausalLM" in (getattr(settings, "auto_map", None) or {})
    writers = {
        *known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values(),
        *known.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.values(),
    }
    if names and not own and not writers & {*names}:
        what = f"is {model.name_or_path!r}, a {names[0]}, not a causal language model."
        raise config_error("not-a-language-model", _MODEL, what, "Name a model for text.")
    return settings


def model_class(settings: Any) -> Any:
    """The class that TRL loads; ``None`` where it is the model's own code."""
    import transformers

    return getattr(transformers, (settings.architectures or [""])[0], None)


def skeleton_of(settings: Any) -> Any:
    """The model on the meta device; ``None`` where its class is its own code."""
    import torch

    if (kind := model_class(settings)) is None:
        return None
    with torch.device("meta"), without_zero3():
        return kind._from_config(settings)


def without_zero3() -> AbstractContextManager[None]:
    """Inside, no ZeRO-3, which partitions a model as it is built and cannot do so without weights."""
    from transformers.integrations import deepspeed

    from evenkeel.trainer.step.setup import temporarily

    return temporarily(deepspeed, {"_hf_deepspeed_config_weak_ref": None})


def size_of(skeleton: Any, settings: Any, config: RunConfig) -> ModelSize:
    """The shape of a model; with an adapter, only the adapter is trained."""
    from peft import get_peft_model

    text, adapter = settings.get_text_config(), lora_config(config)
    parameters = trained = sum(parameter.numel() for parameter in skeleton.parameters())
    if adapter is not None:
        adapted = get_peft_model(deepcopy(skeleton), adapter)
        trained, parameters = adapted.get_nb_trainable_parameters()
    heads = text.num_attention_heads
    return ModelSize(
        parameters=parameters,
        trained=trained,
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        intermediate=getattr(text, "intermediate_size", None) or 4 * text.hidden_size,
        vocabulary=text.vocab_size,
        heads=heads,
        key_value_heads=getattr(text, "num_key_value_heads", None) or heads,
        head_dim=getattr(text, "head_dim", None) or text.hidden_size // heads,
        head_norms=any(name.endswith("q_norm") for name, _ in skeleton.named_modules()),
    )
