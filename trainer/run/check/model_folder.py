"""What is wrong with the folder, file or id that ``model.name_or_path`` names."""

import json
from pathlib import Path

from rewards.registry import closest

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_TOKENIZER = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")


def folder_fault(name: str) -> str | None:
    """Why no policy can be loaded from ``name``, with the way out; ``None`` where nothing is wrong, or of a hub id."""
    path = Path(name).expanduser()
    if path.is_file():
        return f"is a file. Name the folder that holds it: {path.parent}."
    if not path.is_dir():
        return _missing(name, path)
    if not (path / "config.json").is_file():
        return _no_model(path)
    try:
        json.loads((path / "config.json").read_text())
    except (ValueError, OSError) as error:
        return f"has a config.json that cannot be read: {error}. Copy or download the model again."
    return _incomplete(path)


def _missing(name: str, path: Path) -> str | None:
    if not path.parent.is_dir() or len(path.parts) < 2:
        local = name.startswith((".", "/", "~")) or len(path.parts) > 2
        return "is no folder that exists, and no hub id. Check the path." if local else None
    near = closest(path.name, [each.name for each in path.parent.iterdir() if each.is_dir()])
    instead = f"Did you mean {path.parent / near[0]}?" if near else "Check the path."
    return f"is no folder, though {path.parent} is one. {instead}"


def _no_model(path: Path) -> str:
    if (path / "adapter_config.json").is_file():
        return (
            "is a LoRA adapter, without the model that it belongs to. Merge the two first, and name the merged folder; "
            "to train a new adapter name the model itself."
        )
    checkpoints = sorted(path.glob("checkpoint-*"), key=lambda each: (len(each.name), each.name))
    if checkpoints:
        return f"is the directory of a run, not a model. Name one of its checkpoints, such as {checkpoints[-1]}."
    return "holds no config.json, so it is no model. Name a folder that save_pretrained wrote, or a checkpoint."


def _incomplete(path: Path) -> str | None:
    index = next(iter(sorted(path.glob("*.index.json"))), None)
    if index is not None:
        wanted = sorted({*json.loads(index.read_text()).get("weight_map", {}).values()})
        absent = [each for each in wanted if not (path / each).is_file()]
        if absent:
            return f"lacks {len(absent)} of its {len(wanted)} weight files, first {absent[0]}. Download it again."
    elif not any(True for pattern in _WEIGHTS for _ in path.glob(pattern)):
        return f"holds no weights ({', '.join(_WEIGHTS)}). Download or save the model whole."
    if not any((path / each).is_file() for each in _TOKENIZER):
        return "holds no tokenizer. Save the tokenizer of the same model beside it."
    return None
