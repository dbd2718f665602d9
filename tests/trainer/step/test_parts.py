"""Parts of a step, made of plain values and used without a trainer."""

import torch
from accelerate import Accelerator

from evenkeel.trainer.step.setup import Ranks


def test_the_second_of_two_ranks_takes_its_rows():
    ranks = Ranks(Accelerator(cpu=True))
    ranks.index, ranks.count = 1, 2
    assert ranks.own_share([0, 1, 2, 3, 4, 5]) == [3, 4, 5]
    everyone = torch.arange(12).view(4, 3)
    assert ranks.own_rows(everyone, torch.zeros(2, 2)).tolist() == [[6, 7], [9, 10]]  # rows 2 and 3, two tokens
