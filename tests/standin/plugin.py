"""A pytest plugin: tests in this process train on the stand-in device, whatever ``use_cpu`` they ask for.

python -m pytest -p tests.standin.plugin -n 0 tests/trainer/step
"""

from pathlib import Path
from typing import Any

from tests.standin import device

if (reason := device.why_not()) is not None:
    raise RuntimeError(reason)
native = device.install()

import torch  # noqa: E402
from transformers import Trainer, TrainingArguments  # noqa: E402

RANDOM_STATE = "standin_rng.pt"
_as_written = TrainingArguments.__post_init__
_save, _load = Trainer._save_rng_state, Trainer._load_rng_state


def _on_the_device(self: TrainingArguments) -> None:
    """With ``use_cpu`` transformers takes the CPU, whatever accelerate has taken."""
    self.use_cpu = False
    _as_written(self)


def _save_random_state(self: Trainer, output_dir: str) -> None:
    """transformers saves the states of CUDA, XPU, NPU and others by their names."""
    _save(self, output_dir)
    torch.save(torch.get_device_module().get_rng_state(), Path(output_dir) / RANDOM_STATE)


def _load_random_state(self: Trainer, checkpoint: Any) -> None:
    _load(self, checkpoint)
    if checkpoint is not None and (path := Path(checkpoint) / RANDOM_STATE).exists():
        torch.get_device_module().set_rng_state(torch.load(path))


TrainingArguments.__post_init__ = _on_the_device
Trainer._save_rng_state, Trainer._load_rng_state = _save_random_state, _load_random_state
