"""Tokens without an embedding, and weights that do not match the model's config.json."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from evenkeel.errors import Problem, Severity
from evenkeel.trainer.run.check.context import CheckContext
from evenkeel.trainer.run.check.model import model_class, without_zero3
from evenkeel.trainer.run.check.rehearsal import quietly
from evenkeel.trainer.run.record.manifest import model_folder

_MODEL = ("model", "name_or_path")


def model_problems(context: CheckContext) -> Iterator[Problem]:
    """Tokens without an embedding, ``modules_to_save`` that do not exist, weights other than config.json says.

    Weights that are pickled or not on this machine are not checked, nor quantized ones under an adapter.
    """
    words, known = getattr(context.text_settings, "vocab_size", None), context.tokenizer.get_vocab()
    beyond = sum(number >= words for number in known.values()) if isinstance(words, int) else 0
    if beyond > 0.01 * len(known) or (beyond and (context.tokenizer.eos_token_id or 0) >= (words or 0)):
        what = f"has a tokenizer with {beyond} tokens more than its {words} embeddings."
        yield Problem(_MODEL, what, code="tokens-beyond-embeddings")
    if context.skeleton is None:
        return
    modules = {name.rpartition(".")[2] for name, _ in context.skeleton.named_modules()}
    kept = (context.config.model.lora or {}).get("modules_to_save") or []
    if absent := [each for each in kept if str(each).rpartition(".")[2] not in modules]:
        what = f"names {', '.join(map(str, absent))}; the model's modules are {', '.join(sorted(modules - {''}))}."
        yield Problem(("model", "lora", "modules_to_save"), what, code="no-such-module")
    quantized, lora = getattr(context.text_settings, "quantization_config", None), context.config.model.lora
    if quantized is not None and lora is None:
        method = quantized.get("quant_method")
        what = f"has quantized weights ({method}), by its config.json: only an adapter is trained."
        instead = "Write model.lora, or delete quantization_config there if the weights are whole."
        yield Problem(_MODEL, what, instead, code="quantized-weights")
    name = context.config.model.name_or_path
    folder = model_folder(name, context.config.model.revision)
    if folder is None or quantized is not None:
        return
    if Path(name).is_dir() and not {each.suffix for each in folder.iterdir()} & {".safetensors", ".bin"}:
        what = "holds no weights that transformers reads, such as model.safetensors."
        yield Problem(_MODEL, what, "Save them there, of GGUF by from_pretrained(…, gguf_file=…).", code="no-weights")
    try:
        stored = stored_weights(folder)
    except SafetensorError as error:
        what = f"has weights that cannot be read: {error}."
        yield Problem(_MODEL, what, "Copy them again.", code="damaged-weights")
        return
    for how, names in compared(context.settings, stored).items() if stored else ():
        if names:
            what = f"has {len(names)} weights that {how}, by its config.json (first {names[0]})."
            left_out: Severity = "warning" if "left out" in how else "error"
            yield Problem(_MODEL, what, code="other-weights", severity=left_out)


def stored_weights(folder: Path) -> dict[str, Any]:
    """Every tensor of a model's safetensors files, on the meta device; empty where there are none."""
    import torch
    from safetensors import safe_open

    weights: dict[str, Any] = {}
    for path in folder.glob("model*.safetensors"):
        with safe_open(path, "np") as file:
            shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118 no mapping
        weights |= {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
    return weights


def compared(settings: Any, stored: dict[str, Any]) -> dict[str, list[str]]:
    """Kind of mismatch between stored weights and settings → names of tensors, by transformers' own rules."""
    with quietly(), without_zero3():
        _, found = model_class(settings).from_pretrained(
            None,
            config=deepcopy(settings),
            state_dict=stored,
            device_map={"": "meta"},
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    return {
        "are missing": sorted(found["missing_keys"]),
        "are left out": sorted(found["unexpected_keys"]),
        "have another shape": sorted(name for name, *_ in found["mismatched_keys"]),
    }
