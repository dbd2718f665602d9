"""The order of prompts as a function of (seed, epoch), so that a resumed run goes on where it stopped."""

from collections.abc import Iterator

import torch
from torch.utils.data import Sampler
from trl.trainer.utils import RepeatSampler


class EpochSampler(Sampler[int]):
    """TRL's `RepeatSampler`, whose order is made a function of (seed, epoch).

    Epoch e draws what the stock sampler draws at its e-th pass. The stock sampler starts over at pass 0 after a
    resume, and would train the first epoch's order again.
    """

    def __init__(self, sampler: RepeatSampler) -> None:
        self.sampler = sampler
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Called by accelerate's dataloader before each epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        if self.sampler.shuffle:
            self.sampler.generator.manual_seed(self.sampler.seed)
            for _ in range(self.epoch):
                torch.randperm(self.sampler.num_samples, generator=self.sampler.generator)
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)
