"""What every part of a step is made from: the run's settings, its processes, and what TRL has set up."""

import random
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

Batch = dict[str, Any]
"""A rollout batch or micro-batch as TRL passes it around: name → tensor with rows, list, scalar or ``None``."""


Row = dict[str, Any]
"""One row of the data."""


class Ranks:
    """This process among those of the run.

    Attributes:
        index, count: which process this is, of how many.
        sharded: no process holds all weights (ZeRO-3, FSDP), so that a forward pass needs all of them at the same time.
    """

    def __init__(self, accelerator: Any, *, sharded: bool = False) -> None:
        self.accelerator, self.sharded = accelerator, sharded
        self.index: int = accelerator.process_index
        self.count: int = accelerator.num_processes
        self.is_main: bool = accelerator.is_main_process
        self.device: torch.device = accelerator.device

    def any(self, flag: bool) -> bool:
        """Whether ``flag`` is up on any rank."""
        return bool(self.accelerator.gather(torch.tensor([flag], device=self.device)).any())

    def gathered(self, values: Tensor) -> Tensor:
        """(B, …) of each rank → (N, …) of all."""
        gathered: Tensor = self.accelerator.gather(values)
        return gathered

    def gathered_tokens(self, tokens: Tensor, padding: float) -> Tensor:
        """(B, T) of each rank → (N, longest T) of all."""
        return self.gathered(self.accelerator.pad_across_processes(tokens, dim=1, pad_index=padding))

    def own_share(self, everyones: list[Any]) -> list[Any]:
        """This rank's part of a list that all ranks hold; no collective."""
        each = len(everyones) // self.count
        return everyones[self.index * each :][:each]

    def own_rows(self, values: Tensor, like: Tensor) -> Tensor:
        """This rank's rows of (N, …), cut to the tokens of ``like`` (B, T); no collective."""
        rows, tokens = like.shape
        own = values[self.index * rows :][:rows]
        return own[:, :tokens] if own.dim() == 2 else own

    def warn(self, message: str) -> None:
        """A warning of the main process; no collective."""
        if self.is_main:
            warnings.warn(message, stacklevel=3)


def parameters_are_sharded(trainer: Any) -> bool:
    """Whether no rank holds all weights: ZeRO-3 or FSDP."""
    plugin = trainer.accelerator.state.deepspeed_plugin if trainer.is_deepspeed_enabled else None
    return bool(trainer.is_fsdp_enabled or (plugin is not None and plugin.zero_stage == 3))


@contextmanager
def temporarily(target: Any, changed: Mapping[str, Any]) -> Iterator[None]:
    """``target``, an object or a module, with ``changed`` attributes inside; afterwards as before, come what may."""
    own, before = vars(target), {**vars(target)}
    own.update(changed)
    try:
        yield
    finally:
        for name in changed:
            own.pop(name, None)
        own.update({name: before[name] for name in changed if name in before})


@contextmanager
def random_streams_kept(device: torch.device) -> Iterator[None]:
    """Inside, the random streams of Python, NumPy and torch (of the CPU and ``device``) may move; afterwards they are
    as before: an environment draws from any of them.
    """
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[device] if device.type != "cpu" else [], device_type=device.type):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
