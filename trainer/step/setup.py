"""Shared by every part of a step: the run's settings, its position, its processes, and temporary overrides."""

import ctypes
import os
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from evenkeel.trainer.algorithms.strategies import Strategies
from evenkeel.trainer.step.choices import Settings
from evenkeel.trainer.step.options import Schedule

if TYPE_CHECKING:
    from trl import GRPOConfig

Batch = dict[str, Any]
"""A rollout batch or micro-batch as TRL passes it around: name → tensor with rows, list, scalar or ``None``."""
Row = dict[str, Any]
"""One row of the data."""


@dataclass(frozen=True)
class Position:
    """A position in the run.

    Attributes:
        step: optimizer steps made, also before the run was resumed.
        max_steps: optimizer steps of the run.
        microbatches: micro-batches trained since this process started; TRL's ``_step``.
        rollout: number, from 0, of the rollout batch in training, or of the one that is being generated ahead of it.
    """

    step: int
    max_steps: int
    microbatches: int
    rollout: int

    def seed(self, run: int) -> int:
        """The rollout batch's seed, from the seed of the ``run``."""
        return run * 1_000_003 + self.rollout

    @property
    def where(self) -> str:
        """For messages."""
        return f"at optimizer step {self.step}"


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
        """Whether ``flag`` is true on any rank; a collective."""
        return bool(self.accelerator.gather(torch.tensor([flag], device=self.device)).any())

    def gathered(self, values: Tensor) -> Tensor:
        """(B, …) of each rank → (N, …) of all; a collective."""
        gathered: Tensor = self.accelerator.gather(values)
        return gathered

    def gathered_tokens(self, tokens: Tensor, padding: float) -> Tensor:
        """(B, T) of each rank → (N, longest T) of all; a collective."""
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
        """Warn, on the main process only; no collective."""
        if self.is_main:
            warnings.warn(message, stacklevel=3)


@contextmanager
def temporarily(target: Any, changed: Mapping[str, Any]) -> Iterator[None]:
    """Override attributes of ``target``, an object or a module; restored on exit, also after an exception."""
    own, before = vars(target), {**vars(target)}
    own.update(changed)
    try:
        yield
    finally:
        for name in changed:
            own.pop(name, None)
        own.update({name: before[name] for name in changed if name in before})


def keep_freed_memory() -> None:
    """Let glibc, where the environment sets nothing of it, keep freed memory, up to the process's peak, for the next
    tensors. The system fills each page that it gives out again with zeros: a tenth of an update's processor time."""
    if {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_MAX_", "GLIBC_TUNABLES"} & {*os.environ}:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda *_: 0)
    mallopt(-4, 0)  # M_MMAP_MAX
    mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


@contextmanager
def random_streams_kept(device: torch.device) -> Iterator[None]:
    """Restore the random streams of Python, NumPy and torch (CPU and ``device``) on exit."""
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[device] if device.type != "cpu" else [], device_type=device.type):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)


@dataclass(frozen=True)
class Setup:
    """The constructor argument of every part of a trainer, made once TRL's side is initialized.

    Attributes:
        settings: of the run; facts about the loaded model are in ``settings.loaded``.
        choices: name of `choices.SWITCHES` → whether that shortcut is used.
        tokenizer: of the policy.
        decode: tokens of completions → their texts.
        ends: tokens that end a completion; one that ends with another token was truncated.
        reward_names, reward_weights: of the reward functions, (F,).
        dtype: of the forward passes; it decides how large a rounding error may be.
    """

    settings: Settings
    choices: Mapping[str, bool]
    ranks: Ranks
    tokenizer: Any
    decode: Callable[[Any], list[str]]
    ends: frozenset[int]
    reward_names: Sequence[str]
    reward_weights: Tensor
    dtype: torch.dtype = torch.float32

    @property
    def args(self) -> "GRPOConfig":
        """TRL's settings."""
        return self.settings.args

    @property
    def strategies(self) -> Strategies:
        """The run's strategies."""
        return self.settings.strategies

    @property
    def schedule(self) -> Schedule:
        """Counts of a rollout batch's micro-batches and optimizer steps."""
        return Schedule.of(self.args, self.strategies.schedule.num_passes)

    @property
    def by_engine(self) -> bool:
        """Whether π_old are the log-probabilities that vLLM sampled with: with staleness and vLLM."""
        return self.settings.speed.staleness > 0 and bool(self.args.use_vllm)
