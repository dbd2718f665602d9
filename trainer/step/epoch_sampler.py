"""The order of prompts as a function of (seed, epoch), so that a resumed run goes on where it stopped."""

from collections.abc import Callable, Iterator

import torch
from torch.utils.data import Sampler
from trl.trainer.utils import RepeatSampler


class EpochSampler(Sampler[int]):
    """TRL's `RepeatSampler`, whose order is made a function of (seed, epoch).

    Epoch e draws what the stock sampler draws at its e-th pass. The stock sampler starts over at pass 0 after a
    resume, and would train the first epoch's order again.

    Args:
        epoch_of_training: the epoch that the trainer is in. After a resume on several processes no dataloader tells a
            sampler, which lies behind one that skips and one that shards.
    """

    def __init__(self, sampler: RepeatSampler, epoch_of_training: Callable[[], int] = lambda: 0) -> None:
        self.sampler = sampler
        self.epoch_of_training = epoch_of_training
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Called by accelerate's dataloader before each epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        if self.sampler.shuffle:
            self.sampler.generator.manual_seed(self.sampler.seed)
            for _ in range(max(self.epoch, self.epoch_of_training())):
                torch.randperm(self.sampler.num_samples, generator=self.sampler.generator)
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)
