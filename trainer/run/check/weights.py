"""Whether a model's weights are those that its config.json asks for, by their names and shapes alone."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.check.context import CheckContext, Finding, error, first_of, warning
from evenkeel.trainer.run.check.model import without_zero3

_FILES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
"""Where transformers looks, in its order."""
_BUFFERS = (".inv_freq", ".masked_bias")
"""What older versions saved and nobody trains."""


def weight_findings(context: CheckContext) -> Iterator[Finding]:
    """Weights that are drawn at random, left out or of another shape when the model is loaded.

    transformers says what by its own rules for renamed, tied and fused weights, of a model on the meta device. Nothing
    is said of models with code of their own, of those that are stored quantized, and of what is not on this machine.
    """
    name = context.config.model.name_or_path
    folder = _folder(name, context.config.model.revision)
    if folder is None or context.skeleton is None or getattr(context.settings, "quantization_config", None) is not None:
        return
    stored, fault = stored_shapes(folder)
    if fault:
        yield error("model", "unreadable-weights", f"model.name_or_path = {name!r}: {fault}")
    if not stored:
        return
    missing, unexpected, mismatched = compared(context.skeleton.config, stored)
    own = {_module(key) for key in context.skeleton.state_dict()}
    extra = sorted(key for key in unexpected if _module(key) in own and not key.endswith(_BUFFERS))
    others = sorted({key.split(".")[0] for key in unexpected if _module(key) not in own})
    layers = f"config.json says num_hidden_layers = {getattr(context.settings, 'num_hidden_layers', '?')}"
    again = "Bring the config.json and the weights of one model together, or save the model again."
    if missing:
        yield error(
            "model",
            "missing-weights",
            f"The weights of {name!r} lack {len(missing)} tensors that its config.json asks for "
            f"({first_of(missing, 4)}): they would be drawn at random. {layers}. {again}",
        )
    if extra:
        yield error(
            "model",
            "weights-without-place",
            f"The weights of {name!r} hold {len(extra)} tensors for which its config.json has no place "
            f"({first_of(extra, 4)}): they would be left out. {layers}. {again}",
        )
    if mismatched:
        shapes = [f"{key} {list(saved)} in place of {list(wanted)}" for key, saved, wanted in sorted(mismatched)]
        yield error(
            "model",
            "weights-of-other-shapes",
            f"{len(mismatched)} of the weights of {name!r} have other shapes than its config.json asks for "
            f"({first_of(shapes, 4)}). {again}",
        )
    if others:
        yield warning(
            "model",
            "foreign-modules",
            f"The weights of {name!r} hold modules that a causal language model has not ({', '.join(others)}): they "
            "are left out, as of a reward or value model its head. Check that this is the right model.",
        )


def _folder(name: str, revision: str | None) -> Path | None:
    """The folder of a model on this machine, be it a hub id's in the cache."""
    if Path(name).exists():
        return Path(name) if Path(name).is_dir() else None
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(name, "config.json", revision=revision)
    except ValueError:  # not an id; reported elsewhere
        return None
    return Path(found).parent if isinstance(found, str) else None


def stored_shapes(folder: Path) -> tuple[dict[str, tuple[int, ...]], str]:
    """Name → shape of every tensor that a model's files hold, and what is wrong with a file.

    Empty where a file is not there, which is reported elsewhere.
    """
    first = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    if first is None:
        return {}, ""
    names = [first.name]
    if first.suffix == ".json":
        names = sorted({*json.loads(first.read_text()).get("weight_map", {}).values()})
    shapes: dict[str, tuple[int, ...]] = {}
    for name in names:
        if not (folder / name).is_file():
            return {}, ""
        try:
            shapes |= (_safetensors if name.endswith(".safetensors") else _pickled)(folder / name)
        except Exception as fault:  # noqa: BLE001 — of a damaged file torch raises anything
            return {}, f"{name} cannot be read ({str(fault).splitlines()[0]}). Copy or download it again."
    return shapes, ""


def _safetensors(file: Path) -> dict[str, tuple[int, ...]]:
    with file.open("rb") as weights:
        length = int.from_bytes(weights.read(8), "little")
        if not 0 < length < file.stat().st_size:
            raise ValueError("it has no header")
        header = json.loads(weights.read(length))
    header.pop("__metadata__", None)
    end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if (size := file.stat().st_size) != 8 + length + end:
        raise ValueError(f"it has {size:,} bytes, and its header speaks of {8 + length + end:,}")
    return {name: tuple(entry["shape"]) for name, entry in header.items()}


def _pickled(file: Path) -> dict[str, tuple[int, ...]]:
    import torch

    tensors = torch.load(file, map_location="meta", weights_only=True)
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def compared(
    settings: Any, stored: Mapping[str, tuple[int, ...]]
) -> tuple[list[str], list[str], list[tuple[str, Any, Any]]]:
    """Missing and unexpected names, and mismatched ones with both shapes, when TRL loads these tensors as a model."""
    import torch
    import transformers
    from transformers import AutoModelForCausalLM

    kind = getattr(transformers, (settings.architectures or [""])[0], None)
    if kind is None:
        kind = AutoModelForCausalLM._model_mapping[type(settings)]
    tensors = {name: torch.empty(shape, device="meta") for name, shape in stored.items()}
    with _silent(), without_zero3():
        _, found = kind.from_pretrained(
            None,
            config=deepcopy(settings),
            state_dict=tensors,
            device_map={"": "meta"},
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    return sorted(found["missing_keys"]), sorted(found["unexpected_keys"]), [*found["mismatched_keys"]]


@contextmanager
def _silent() -> Iterator[None]:
    """Without transformers' own report, which is ours to give."""
    from transformers.utils import logging as its_logging

    before, bars = its_logging.get_verbosity(), its_logging.is_progress_bar_enabled()
    its_logging.set_verbosity(logging.ERROR)
    its_logging.disable_progress_bar()
    try:
        yield
    finally:
        its_logging.set_verbosity(before)
        if bars:
            its_logging.enable_progress_bar()


def _module(key: str) -> str:
    """The part of the model that a tensor belongs to: ``model.layers``, ``model.norm``, ``lm_head``."""
    parts = key.split(".")
    return ".".join(parts[:2] if len(parts) > 2 else parts[:1])
