"""What a run cannot train of its model: tokens without an embedding, weights that its config.json does not ask for."""

import json
import logging
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from evenkeel.errors import Problem, Severity
from evenkeel.trainer.run.check.context import CheckContext
from evenkeel.trainer.run.check.model import without_zero3

_MOST_UNUSED = 0.01
"""Share of a tokenizer's tokens that may have no embedding."""
_MODEL = ("model", "name_or_path")


def model_problems(context: CheckContext) -> Iterator[Problem]:
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


def _weights(context: CheckContext) -> Iterator[Problem]:
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
