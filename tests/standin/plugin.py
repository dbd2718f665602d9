"""A pytest plugin: tests in this process train on the stand-in device, whatever ``use_cpu`` they ask for.

python -m pytest -p tests.standin.plugin -n 0 tests/trainer/step
"""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from tests.standin import device

if (reason := device.why_not()) is not None:
    raise RuntimeError(reason)
native = device.install()

import torch  # noqa: E402
from accelerate import Accelerator  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402
from transformers import Trainer, TrainingArguments  # noqa: E402

_as_written = TrainingArguments.__post_init__
_save, _load = Trainer._save_rng_state, Trainer._load_rng_state


def _on_the_device(self: TrainingArguments) -> None:
    """With ``use_cpu`` transformers takes the CPU, whatever accelerate has taken; but several processes that accelerate
    knows by no name of a device are to it processes of the CPU, which then take the device."""
    self.use_cpu = int(os.environ.get("WORLD_SIZE", "1")) > 1
    _as_written(self)


def _save_random_state(self: Trainer, output_dir: str) -> None:
    """transformers saves the states of CUDA, XPU, NPU and others by their names."""
    _save(self, output_dir)
    torch.save(torch.standin.get_rng_state(), _random_state(self, output_dir))


def _load_random_state(self: Trainer, checkpoint: Any) -> None:
    _load(self, checkpoint)
    if checkpoint is not None and (path := _random_state(self, checkpoint)).exists():
        torch.standin.set_rng_state(torch.load(path))


def _random_state(trainer: Trainer, checkpoint: str) -> Path:
    return Path(checkpoint) / f"standin_rng_{trainer.args.process_index}.pt"


def _of_the_device(collective: Callable[..., Any]) -> Callable[..., Any]:
    """A collective that refuses tensors of the CPU, as NCCL does; accelerate asks nothing of one process."""

    @wraps(collective)
    def checked(self: Accelerator, tensor: Any, *positional: Any, **keywords: Any) -> Any:
        given = {each.device.type for each in tree_leaves(tensor) if isinstance(each, torch.Tensor)}
        if self.device.type == device.NAME and (others := given - {device.NAME}):
            raise RuntimeError(f"No backend type associated with device type {others.pop()} ({collective.__name__})")
        return collective(self, tensor, *positional, **keywords)

    return checked


for _name in ("gather", "reduce", "pad_across_processes"):
    setattr(Accelerator, _name, _of_the_device(getattr(Accelerator, _name)))
TrainingArguments.__post_init__ = _on_the_device
Trainer._save_rng_state, Trainer._load_rng_state = _save_random_state, _load_random_state
