"""From a YAML file to a ``RunConfig``, or to one error that names everything wrong with it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config.layers import layered
from evenkeel.trainer.run.config.schema import RAW, RunConfig
from evenkeel.trainer.run.config.section import expanded
from evenkeel.trainer.run.config.shipped import CONFIGS
from evenkeel.trainer.run.config.wording import problems_of
from evenkeel.trainer.run.config.yaml_document import Node


def load_config(path: str | Path, overrides: Sequence[str] = (), *, evaluation_only: bool = False) -> RunConfig:
    """The run that a YAML file describes, after the base it extends and the overrides ``dotted.key=value``.

    In every path ``~`` and environment variables are expanded. A path to read (model, template, rows, DeepSpeed's and
    FSDP's files) is looked for next to the file that writes it, then in the current directory, then among the shipped
    files (``configs/…``), and becomes absolute where it is found; in an override the current directory comes first. Any
    other stays as it is, and is read as a hub id. ``output_dir`` is relative to the current directory. With
    ``evaluation_only`` the file needs held-out rows, and no rows to train on.

    Raises:
        Refusal: everything that is wrong, each with its file (or "command line"), line and dotted path. Values are
            checked once the YAML of every layer can be read.
    """
    return config_of(layered(Path(path), overrides), Path(path), evaluation_only=evaluation_only)


def config_of(tree: Node, path: Path, *, evaluation_only: bool = False) -> RunConfig:
    """The run of a ``tree`` that the file ``path`` holds; see `load_config`."""
    tree = Node({"name": Node(path.stem, tree.origin), **tree.value}, tree.origin)
    data = tree.plain()
    data.setdefault("output_dir", f"runs/{data['name']}")
    for keys in _paths(data):
        _locate(data, tree, keys, path.parent)
    if isinstance(data["output_dir"], str):
        data["output_dir"] = expanded(data["output_dir"])
    try:
        return RunConfig.model_validate(data, context={"evaluation_only": evaluation_only})
    except ValidationError as error:
        raise Refusal(problems=problems_of(error, tree)) from None


def local_path(name: str, *folders: Path) -> Path | None:
    """The existing file or folder that ``name`` means: from the first of ``folders`` that has it, or shipped."""
    candidates = [Path(text) for text in dict.fromkeys((expanded(name), name))]
    places = [where / candidate for candidate in candidates for where in (*folders, CONFIGS.parent)]
    return next((place.absolute() for place in places if os.path.exists(place)), None)


def _paths(data: dict[str, Any]) -> list[tuple[str, ...]]:
    """The settings that may name a file to read: the model, its chat template, a checkpoint, rows, DeepSpeed's …"""
    paths: list[tuple[str, ...]] = [("model", "name_or_path"), ("branch_of",)]
    paths += [("trl", "deepspeed"), ("trl", "fsdp_config")]
    if isinstance(data.get("model"), dict) and data["model"].get("chat_template") != RAW:
        paths.append(("model", "chat_template"))
    for part in ("train", "test"):
        paths.append(("data", part, "path"))
        sources = data["data"].get(part) if isinstance(data.get("data"), dict) else None
        if isinstance(sources, dict):
            paths += [("data", part, name, "path") for name, source in sources.items() if isinstance(source, dict)]
    return paths


def _locate(data: Any, tree: Node, keys: tuple[str, ...], run_folder: Path) -> None:
    node = tree.at(keys)
    if node is None or not isinstance(node.value, str) or not node.value:
        return
    is_in_file = node.origin.line is not None
    folder = node.origin.folder if is_in_file else run_folder
    folders = (folder, Path()) if is_in_file else (Path(), folder)
    found, text = local_path(node.value, *folders), expanded(node.value)
    if found is None and keys[0] == "model" and not Path(text).parent.is_dir() and (folder / text).parent.is_dir():
        found = (folder / text).absolute()  # so that messages name the place searched
    for key in keys[:-1]:
        data = data[key]
    data[keys[-1]] = text if found is None else str(found)
