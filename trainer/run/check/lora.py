"""LoRA's targets against the names that the model's layers have."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from evenkeel.errors import suggest
from evenkeel.trainer.run.check.context import CheckContext, Finding, error

ALL_LINEAR = "all-linear"


def lora_findings(context: CheckContext) -> Iterator[Finding]:
    """Names in ``target_modules`` and ``modules_to_save`` that no layer has."""
    lora = context.config.model.lora
    if lora is None or context.skeleton is None:
        return
    from torch import nn
    from transformers.pytorch_utils import Conv1D

    # the layers that peft puts LoRA on
    adaptable = (nn.Linear, nn.Embedding, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.MultiheadAttention, Conv1D)
    layers = [name for name, layer in context.skeleton.named_modules() if isinstance(layer, adaptable)]
    wanted = lora.get("target_modules")
    if isinstance(wanted, str) and wanted != ALL_LINEAR:
        if not any(_matches(wanted, name) for name in layers):
            yield _nothing("target_modules", [wanted], layers)
    elif isinstance(wanted, list):
        yield from _absent("target_modules", wanted, layers)
    kept, names = lora.get("modules_to_save"), [name for name, _ in context.skeleton.named_modules() if name]
    yield from _absent("modules_to_save", kept if isinstance(kept, list) else [], names)


def adapted_parameters(context: CheckContext) -> int | None:
    """Parameters that LoRA trains: ``r·(inputs + outputs)`` of each target; ``None`` where they are not known."""
    from torch import nn

    lora = context.config.model.lora or {}
    wanted, rank = lora.get("target_modules", ALL_LINEAR), lora.get("r", 8)
    if context.skeleton is None:
        return None
    layers = [(name, layer) for name, layer in context.skeleton.named_modules() if isinstance(layer, nn.Linear)]
    if wanted == ALL_LINEAR or wanted is None:
        chosen = [layer for name, layer in layers if not name.endswith("lm_head")]
    elif isinstance(wanted, str):
        chosen = [layer for name, layer in layers if _matches(wanted, name)]
    else:
        chosen = [layer for name, layer in layers if _is_named(name, wanted)]
    return sum(rank * (layer.in_features + layer.out_features) for layer in chosen)


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return False


def _is_named(name: str, wanted: Sequence[str]) -> bool:
    return any(name == each or name.endswith(f".{each}") for each in wanted)


def _absent(key: str, wanted: Sequence[Any], names: Sequence[str]) -> Iterator[Finding]:
    absent = [each for each in wanted if not any(_is_named(name, [str(each)]) for name in names)]
    if absent:
        yield _nothing(key, absent, names)


def _nothing(key: str, absent: Sequence[Any], names: Sequence[str]) -> Finding:
    last = sorted({name.rpartition(".")[2] for name in names if not name.rpartition(".")[2].isdigit()})
    hint = suggest(str(absent[0]), last, "Check the spelling.")
    listed = ", ".join(map(repr, absent))
    return error(
        "model",
        "lora-matches-nothing",
        f"model.lora.{key}: {listed} match nothing in the model. {hint} Its layers are called {', '.join(last)}; "
        "target_modules: all-linear takes every linear layer but the output.",
    )
