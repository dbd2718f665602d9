"""The libraries of a training, which take seconds to import."""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from evenkeel.trainer.run.config.layers import layered

TRAINING = ("evenkeel.trainer.run.launch", "evenkeel.trainer.step.trainer")


def load_libraries(file: str | Path, overrides: Sequence[str] = ()) -> None:
    """Print a line that names ``file``, and import what a training needs; nothing where that is done already.

    Raises:
        Refusal: the YAML of the file or of the overrides cannot be read; then nothing is imported.
    """
    if TRAINING[-1] not in sys.modules:
        layered(Path(file), overrides)
        if os.environ.get("RANK", "0") == "0":
            print(f"{file}: loading PyTorch and TRL", flush=True)
        import_training()


def import_training() -> None:
    """Import `TRAINING`."""
    # before torch: of DDP's own default it warns at every start
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    with importing():
        for module in TRAINING:
            import_module(module)


@contextmanager
def importing() -> Iterator[None]:
    """Without a search for garbage, which would take a third of the time; later ones leave out what was made."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
