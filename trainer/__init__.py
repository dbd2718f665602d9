"""Evenkeel's trainer: a subclass of TRL's `GRPOTrainer` and the pure functions that it moves tensors between."""

import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenkeel.trainer.step.trainer import RLVRTrainer as RLVRTrainer

if __name__ != "trainer":  # here, and not in `evenkeel` itself: that file may be theirs
    try:
        _theirs = distribution("evenkeel")  # ours is trl-evenkeel
    except PackageNotFoundError:
        pass
    else:
        if any(file.parts[0] == "evenkeel" for file in _theirs.files or ()):
            raise ImportError(
                f"{_theirs.locate_file('evenkeel')} belongs to the distribution evenkeel {_theirs.version}, another "
                "project's, and hides or mixes with the files of trl-evenkeel, which is imported here. Write: pip "
                "uninstall evenkeel, then install trl-evenkeel again, with --force-reinstall --no-deps, for what they "
                "had in common is gone too."
            )

# a checkout that is not installed, in which the folder's own name was imported
if __name__ == "trainer" and find_spec("evenkeel") is None:
    sys.modules["evenkeel"] = package = ModuleType("evenkeel")
    root = Path(__file__).resolve().parents[1]
    package.__path__ = [str(root), str(root / "trainer/public")]  # where `evenkeel.errors` lies

__all__ = ["RLVRTrainer"]


def __getattr__(name: str) -> Any:
    """Import what is asked for: reading a configuration must not need torch."""
    if name == "RLVRTrainer":
        return import_module("evenkeel.trainer.step.trainer").RLVRTrainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
