import math

import torch

from evenkeel.trainer.algorithms.drift import uniform_groups


def test_uniform_groups_by_hand():
    """All right, one unjudged; all wrong; mixed; nobody judged."""
    nan = math.nan
    right, wrong = uniform_groups(torch.tensor([1.0, nan, 0.0, 0.0, 1.0, 0.0, nan, nan]), 2)
    assert right.tolist() == [True, False, False, False]
    assert wrong.tolist() == [False, True, False, False]
