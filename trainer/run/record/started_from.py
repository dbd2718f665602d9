"""What a run starts from, by content: its model and the code of the user's own parts; and what has changed of it."""

import ast
import hashlib
import importlib.util
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.config import RunConfig

_OURS = "evenkeel"
_INSTALLED = tuple(
    f"{Path(sysconfig.get_path(name)).resolve()}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_PACKAGES = frozenset({"site-packages", "dist-packages"})
_NAMED = re.compile(r"\w+(?:\.\w+)*:\w+(?:\.\w+)*")
_OFFERED = [f"evenkeel.{kind}" for kind in ("verifiers", "generators", "advantages", "token_weights", "coefficients")]
_OFFERED += [f"evenkeel.{kind}" for kind in ("update_schedules", "prompt_samplers", "environments", "tools")]
"""Groups of entry points in which installed packages offer parts by name."""
_MODEL_FILES = (".safetensors", ".bin", ".json", ".jinja", ".model", ".txt", ".tiktoken", ".py")
_OF_A_RUN = ("trainer_state.json", "manifest.json", "logged_so_far_", "training_args.bin")
"""Beginnings of files that a checkpoint holds beside its model."""
_WHOLE_BYTES = 64 << 20


def content_hash(file: Path) -> str:
    """SHA-256 of a file; beyond 64 MiB of its size and 64 blocks of 1 MiB, evenly spread: training moves all."""
    size = file.stat().st_size
    digest = hashlib.sha256(f"{size}\n".encode())
    with file.open("rb") as content:
        if size <= _WHOLE_BYTES:
            digest.update(content.read())
        else:
            for block in range(64):
                content.seek(block * (size - (1 << 20)) // 63)
                digest.update(content.read(1 << 20))
    return digest.hexdigest()


def model_files(name_or_path: str, revision: str | None) -> dict[str, str]:
    """File → hash of all that a model's folder says: weights, configuration, tokenizer, template, code of its own.

    Of a hub id its commit; empty where that is not known, as without a copy in the cache.
    """
    folder = Path(name_or_path)
    if folder.is_dir():
        files = (path for path in folder.iterdir() if path.suffix in _MODEL_FILES and path.is_file())
        return {path.name: content_hash(path) for path in sorted(files) if not path.name.startswith(_OF_A_RUN)}
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(name_or_path, "config.json", revision=revision)
    except ValueError:
        return {}
    return {"commit": Path(found).parent.name} if isinstance(found, str) else {}


Place = tuple[str | int, ...]
"""Of a key in a run's file."""


def named_code(config: RunConfig) -> dict[Place, str]:
    """Where a run's file names a part that is not built in → its ``module:attribute``; nothing is imported."""
    parts: dict[Place, Any] = {("environment",): config.environment, ("tools",): config.tools}
    parts |= {("rewards", number, "verifier"): each.verifier for number, each in enumerate(config.rewards)}
    parts |= {("algorithm", kind): part for kind, part in config.algorithm.strategies.items()}
    parts |= {(*place, "generator"): each.generator for place, each in config.data.placed_sources}
    offered = {point.name: point.value for kind in _OFFERED for point in entry_points(group=kind)}
    texts = [found for place, part in parts.items() for found in _texts(part, place)]
    return {place: offered.get(text, text) for place, text in texts if text in offered or _NAMED.fullmatch(text)}


def own_code(config: RunConfig) -> dict[str, str]:
    """Module → hash of its source, of every part that is not built in and of what its file imports beside it.

    Followed are imports written in the source, of modules that are not installed or of the part's own package. Not
    seen is what a part imports by a name that it computes, and files that it reads.
    """
    found: dict[str, str] = {}
    for module in {named.partition(":")[0] for named in named_code(config).values()}:
        _add(module, module.partition(".")[0], found)
    return dict(sorted(found.items()))


def _texts(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """All texts and keys in nested mappings and lists: a part may be the option of another, or the key of a mixture."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping | list):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _texts(key, (*place, key))
            yield from _texts(item, (*place, key))


def _add(module: str, package: str, found: dict[str, str]) -> None:
    file = file_of(module)
    if module in found or file is None:
        return
    found[module] = content_hash(file)
    if parent := module.rpartition(".")[0]:  # is run before it
        _add(parent, package, found)
    for imported in _imported(file, module):
        top = imported.partition(".")[0]
        if top == _OURS != package:
            continue
        beside = file_of(imported)
        if beside is not None and (top == package or not _is_installed(beside.resolve())):
            _add(imported, package, found)


def _is_installed(file: Path) -> bool:
    """Whether a file is Python's or a package's, of this virtual environment or of one below it."""
    return str(file).startswith(_INSTALLED) or not _PACKAGES.isdisjoint(file.parts)


def file_of(module: str) -> Path | None:
    """The file of a module that is imported or can be; ``None`` of what is built into Python, or is not a module."""
    spec = _spec_of(module)
    path = Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None
    return path if path is not None and path.is_file() else None


def _spec_of(module: str) -> ModuleSpec | None:
    """What is known of a module before it is imported; the packages above it are not imported either."""
    if module in sys.modules:
        return sys.modules[module].__spec__
    if not (above := module.rpartition(".")[0]):
        return importlib.util.find_spec(module)
    package = _spec_of(above)
    folders = package and package.submodule_search_locations
    return PathFinder.find_spec(module, folders) if folders else None


def _imported(file: Path, module: str) -> Iterable[str]:
    """Names of the modules that a file's import statements may mean, wherever they stand in it."""
    if file.suffix != ".py":
        return []
    names: list[str] = []
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError:
        return []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(part for part in (above, node.module or "") if part)
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return dict.fromkeys(name for name in names if name)


def what_changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Lines for what differs between two records of what a run starts from, and what an older one does not contain."""
    changed = _differing("data", before.get("data_fingerprints", {}), now["data_fingerprints"])
    unknown = []
    if before.get("model_files") and now["model_files"]:
        changed += _differing("model", before["model_files"], now["model_files"])
    else:
        unknown.append("the model's configuration and tokenizer")
        old, new = before.get("model_fingerprint"), now["model_fingerprint"]
        if old is None or new is None:
            unknown[0] = "the model"
        elif old != new:
            changed.append(f"  model, weights: {_short(old)} → {_short(new)}")
    if "own_code" in before:
        changed += _differing("code", before["own_code"], now["own_code"])
    elif now["own_code"]:
        unknown.append(f"the code of your own parts ({', '.join(now['own_code'])})")
    return changed, unknown


def _differing(of: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"  {of}, {name}: {_short(before.get(name))} → {_short(now.get(name))}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]


def _short(fingerprint: str | None) -> str:
    return "absent" if fingerprint is None else f"{fingerprint[:12]}…"
