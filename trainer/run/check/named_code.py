"""The code that a run's file names, found without importing any of it."""

import importlib.util
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenkeel.rewards.registry import is_of_python
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.yaml_document import Node

_NAMED = re.compile(r"\w+(?:\.\w+)*:\w+(?:\.\w+)*")


@dataclass(frozen=True)
class Code:
    """Code that a run's file names.

    Attributes:
        name: ``module:attribute``, or the model whose folder holds it.
        file: of the module; ``None`` where there is none, or it is the model's.
        key: dotted, and ``written``: the line or the command line.
    """

    name: str
    file: str | None
    key: str
    written: str

    def __str__(self) -> str:
        return f"  {self.name} ({self.file or 'no file'}): {self.written}, {self.key}"


def named_code(config: RunConfig, tree: Node) -> tuple[Code, ...]:
    """What is imported for a run and not built in; what is refused for its name alone is left out."""
    parts: dict[tuple[str | int, ...], Any] = {("environment",): config.environment, ("tools",): config.tools}
    parts |= {("rewards", number, "verifier"): each.verifier for number, each in enumerate(config.rewards)}
    parts |= {("algorithm", kind): part for kind, part in config.algorithm.strategies.items()}
    parts |= {(*place, "generator"): each.generator for place, each in config.data.placed_sources}
    if config.model.trust_remote_code:
        parts["model", "trust_remote_code"] = f"{config.model.name_or_path}:code"
    return tuple(
        Code(text, _file_of(text.partition(":")[0]), ".".join(map(str, place)), str((tree.at(place) or tree).origin))
        for place, part in parts.items()
        for text in _texts(part)
        if place[0] == "model" or (_NAMED.fullmatch(text) and not is_of_python(text))
    )


def _texts(value: Any) -> Iterator[str]:
    """All texts and keys in nested mappings and lists: a part may be the option of another, or the key of a mixture."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in [*value, *value.values()] if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _file_of(module: str) -> str | None:
    """The file of a module; of a package's only the package is looked for, and nothing is imported."""
    top, *below = module.split(".")
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(top)
        folders = [Path(folder, *below) for folder in (spec and spec.submodule_search_locations) or ()]
        files = [each for folder in folders for each in (folder.with_suffix(".py"), folder / "__init__.py")]
        files += [Path(spec.origin)] if spec and spec.origin and not below else []
        return next((str(file) for file in files if file.is_file()), None)
    return None
