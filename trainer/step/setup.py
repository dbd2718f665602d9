"""What every part of a step is made from: the run's settings, its processes, and what TRL has set up."""

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
    """Where in the run training stands.

    Attributes:
        step: optimizer steps made, also before the run was resumed.
        max_steps: optimizer steps of the run.
        microbatches: micro-batches trained since this process started; TRL's ``_step``.
        rollout: rollout batches of the run that were trained to their end, so the number of the one in training.
    """

    step: int
    max_steps: int
    microbatches: int
    rollout: int

    def seed(self, run: int) -> int:
        """A seed for each rollout batch, from that of the run."""
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


@dataclass(frozen=True)
class Setup:
    """What the parts of a trainer are made from, once TRL's side is set up.

    Attributes:
        settings: the run's; what it asks of the model is in ``settings.loaded``.
        choices: what of `choices.SWITCHES` is taken.
        tokenizer: of the policy.
        decode: tokens of completions → their texts.
        ends: tokens that a completion which was not cut off ends with.
        reward_names, reward_weights: of the reward functions, (F,).
        dtype: what forward passes round to.
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
        """Those of the run."""
        return self.settings.strategies

    @property
    def schedule(self) -> Schedule:
        """How often a rollout batch is trained on."""
        return Schedule.of(self.args, self.strategies.schedule.num_passes)

    @property
    def group_size(self) -> int:
        """Responses to one prompt."""
        size: int = self.args.num_generations
        return size

    @property
    def lags(self) -> bool:
        """Whether a batch is trained by a later policy than the one that wrote it."""
        return self.settings.speed.staleness > 0

    @property
    def by_engine(self) -> bool:
        """Whether π_old are then the log-probabilities that vLLM sampled with."""
        return self.lags and bool(self.args.use_vllm)
