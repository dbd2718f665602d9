"""The model's folder, configuration, shape and names of weights, without the weights; and what a run cannot train."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenkeel.errors import Problem, Refusal, Severity, closest
from evenkeel.trainer.run.check.memory import ModelSize
from evenkeel.trainer.run.config import RunConfig, lora_config
from evenkeel.trainer.run.config.shipped import maker_of
from evenkeel.trainer.run.record.files import files_fault

if TYPE_CHECKING:
    from evenkeel.trainer.run.check.context import CheckContext

_MOST_UNUSED = 0.01
"""Share of a tokenizer's tokens that may have no embedding."""
_NO_HEAD = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "LMHead")
_MODEL = ("model", "name_or_path")


def model_settings(config: RunConfig) -> Any:
    """The configuration of ``model.name_or_path``; of a model that also sees, all of it.

    Raises:
        Refusal: it cannot be read, or writes no text.
    """
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as WRITERS

    from evenkeel.trainer.run.data.sources import use_offline_mode

    model = config.model
    if not Path(model.name_or_path).exists():
        use_offline_mode()
    try:
        settings = AutoConfig.from_pretrained(
            model.name_or_path, revision=model.revision, trust_remote_code=model.trust_remote_code
        )
    except Exception as fault:  # of a config.json each class of models refuses values in its own way
        first = (str(fault).strip() or type(fault).__name__).splitlines()[0]
        what = f"is {model.name_or_path!r}, which cannot be read: {first}"
        raise Refusal(problems=[Problem(_MODEL, what, code="unreadable-model")]) from fault
    names = settings.architectures or []
    own = "AutoModelForCausalLM" in (getattr(settings, "auto_map", None) or {})
    if names and not own and not any(name.endswith(_NO_HEAD) or name in WRITERS.values() for name in names):
        what = f"is {model.name_or_path!r}, a {names[0]} and no causal language model."
        raise Refusal(problems=[Problem(_MODEL, what, "Name a model for text.", code="not-a-language-model")])
    return settings


def skeleton_of(settings: Any) -> Any:
    """The model on the meta device; ``None`` where its class needs code of its own."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    kinds = (AutoModelForCausalLM, AutoModelForImageTextToText)
    known = next((kind for kind in kinds if type(settings) in kind._model_mapping), None)
    if known is None:
        return None
    with torch.device("meta"), without_zero3():
        return known.from_config(settings)


@contextmanager
def without_zero3() -> Iterator[None]:
    """Without ZeRO-3, which divides a model over the ranks as it is made, and cannot divide one without weights."""
    from transformers.integrations import deepspeed

    reference = deepspeed._hf_deepspeed_config_weak_ref
    deepspeed.unset_hf_deepspeed_config()
    try:
        yield
    finally:
        deepspeed._hf_deepspeed_config_weak_ref = reference


def size_of(skeleton: Any, settings: Any, config: RunConfig) -> ModelSize:
    """The shape of a model; of one with an adapter, that alone is trained."""
    from peft import get_peft_model

    text, adapter = settings.get_text_config(), lora_config(config)
    parameters = sum(parameter.numel() for parameter in skeleton.parameters())
    trained = None if adapter is None else get_peft_model(deepcopy(skeleton), adapter).get_nb_trainable_parameters()[0]
    heads = text.num_attention_heads
    return ModelSize(
        parameters=parameters + (trained or 0),
        trained=parameters if trained is None else trained,
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        intermediate=getattr(text, "intermediate_size", None) or 4 * text.hidden_size,
        vocabulary=text.vocab_size,
        heads=heads,
        key_value_heads=getattr(text, "num_key_value_heads", None) or heads,
        head_dim=getattr(text, "head_dim", None) or text.hidden_size // heads,
        head_norms=any(name.endswith("q_norm") for name, _ in skeleton.named_modules()),
    )


def model_problems(context: "CheckContext") -> Iterator[Problem]:
    """Tokens without an embedding, modules to save that no layer is; weights that its config.json does not ask for."""
    words, known = getattr(context.text_settings, "vocab_size", None), context.tokenizer.get_vocab()
    beyond = sum(number >= words for number in known.values()) if isinstance(words, int) else 0
    if beyond > _MOST_UNUSED * len(known) or (beyond and (context.tokenizer.eos_token_id or 0) >= (words or 0)):
        what = f"has a tokenizer with {beyond} tokens more than its {words} embeddings."
        yield Problem(_MODEL, what, "Save the tokenizer of this model.", code="tokens-beyond-embeddings")
    if context.skeleton is None:
        return
    modules = {name.rpartition(".")[2] for name, _ in context.skeleton.named_modules()}
    kept = (context.config.model.lora or {}).get("modules_to_save") or []
    if absent := [each for each in kept if str(each).rpartition(".")[2] not in modules]:
        what = f"names {', '.join(map(str, absent))}, and the model's modules are {', '.join(sorted(modules - {''}))}."
        yield Problem(("model", "lora", "modules_to_save"), what, code="no-such-module")
    yield from _weights(context)


def _weights(context: "CheckContext") -> Iterator[Problem]:
    """Weights that are drawn at random, left out or of another shape when the model is loaded.

    Nothing is said of those that are stored quantized or pickled, and of what is not on this machine.
    """
    model = context.config.model
    folder = _folder(model.name_or_path, model.revision)
    if folder is None or getattr(context.text_settings, "quantization_config", None) is not None:
        return
    try:
        stored = stored_weights(folder)
    except Exception as fault:  # noqa: BLE001 — a damaged file may hold anything
        what = f"has weights that cannot be read: {str(fault).splitlines()[0]}."
        yield Problem(_MODEL, what, "Copy or download the model again.", code="unreadable-weights")
        return
    for how, names in compared(context.settings, stored).items() if stored else ():
        if names:
            layers = getattr(context.text_settings, "num_hidden_layers", "?")
            what = f"{len(names)} weights {how} (first {names[0]}); its config.json has {layers} layers."
            instead = "Bring the config.json and the weights of one model together."
            left_out: Severity = "warning" if "left out" in how else "error"
            yield Problem(_MODEL, what, instead, code="other-weights", severity=left_out)


def _folder(name: str, revision: str | None) -> Path | None:
    """The folder of a model on this machine, be it a hub id's in the cache."""
    if Path(name).exists():
        return Path(name) if Path(name).is_dir() else None
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(found).parent if isinstance(found, str) else None


def stored_weights(folder: Path) -> dict[str, Any]:
    """Every tensor of a model's safetensors files, on the meta device; empty where one is not there.

    Raises:
        ValueError: a file is damaged.
    """
    import torch

    index = folder / "model.safetensors.index.json"
    names = (
        sorted({*json.loads(index.read_text())["weight_map"].values()}) if index.is_file() else ["model.safetensors"]
    )
    if not all((folder / name).is_file() for name in names):
        return {}
    weights: dict[str, Any] = {}
    for name in names:
        with (folder / name).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(length, 10**9)))
        header.pop("__metadata__", None)
        if (folder / name).stat().st_size != 8 + length + max(each["data_offsets"][1] for each in header.values()):
            raise ValueError(f"{name} is cut off")
        weights |= {key: torch.empty(each["shape"], device="meta") for key, each in header.items()}
    return weights


def compared(settings: Any, stored: dict[str, Any]) -> dict[str, list[str]]:
    """How weights differ from what the settings ask for → names of tensors, by transformers' own rules."""
    import transformers
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as its_logging

    kind = getattr(transformers, (settings.architectures or [""])[0], None)
    kind = kind or AutoModelForCausalLM._model_mapping[type(settings)]
    before = its_logging.get_verbosity()
    its_logging.set_verbosity(logging.CRITICAL)
    its_logging.disable_progress_bar()
    try:
        with without_zero3():
            _, found = kind.from_pretrained(
                None,
                config=deepcopy(settings),
                state_dict=stored,
                device_map={"": "meta"},
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
    finally:
        its_logging.set_verbosity(before)
    return {
        "are missing and would be drawn at random": sorted(found["missing_keys"]),
        "have no place and would be left out": sorted(found["unexpected_keys"]),
        "have another shape": sorted(name for name, *_ in found["mismatched_keys"]),
    }


def folder_fault(name: str) -> Refusal | None:
    """Why no policy can be loaded from ``name``; ``None`` where nothing is wrong, or a library says it well."""
    path = Path(name).expanduser()
    code, what, instead = "no-model-folder", "", "Check the path."
    if odd := files_fault(path):
        code, what, instead = "no-regular-file", f"cannot be loaded: {odd}.", "Copy or download the model again."
    elif not path.exists() and (command := maker_of(name)) is not None:
        what, instead = "does not ship, and is made in a checkout of Evenkeel.", f"There run: {command}"
    elif not path.is_dir() and path.parent.is_dir() and (len(path.parts) > 1 or name.startswith((".", "/", "~"))):
        what = "is not a folder."
        if near := closest(path.name, [each.name for each in path.parent.iterdir() if each.is_dir()]):
            instead = f"Did you mean {path.parent / near[0]}?"
    elif path.is_dir() and not (path / "config.json").is_file():
        made = sorted(path.glob("checkpoint-*"), key=lambda each: (len(each.name), each.name))
        adapter = (path / "adapter_config.json").is_file()
        code, what = "no-model", "has no config.json, so it is not a model."
        instead = f"Name one of its checkpoints, such as {made[-1]}." if made else "Name a model's folder."
        instead = "Merge the adapter into its model, and name the merged folder." if adapter else instead
    return Refusal(problems=[Problem(_MODEL, f"is {name!r}, which {what}", instead, code=code)]) if what else None
