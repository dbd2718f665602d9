"""OTB by hand; numbers of verl are in golden.json."""

import torch

from evenkeel.trainer.algorithms.advantages.optimal_token_baseline import otb
from tests.trainer.algorithms.advantages.rollouts import NAN


def test_the_baseline_leans_to_the_response_that_has_moved_the_logits_more():
    probs = torch.tensor([[0.5, 0.5], [1.0, 0.5]])
    squares = torch.tensor([[0.5, 0.5], [1.0, 0.5]])  # of two words: 1 − 2·.5 + .5 = .5 where both may follow, else 0
    rewards, mask = torch.tensor([1.0, 0.0]), torch.ones(2, 2, dtype=torch.long)
    # energies so far (.5, 1) and (0, .5): baselines 1 and 2/3
    found = otb(rewards, 2, mask, probs.log(), squares)
    torch.testing.assert_close(found, torch.tensor([[0.0, 1 / 3], [-1.0, -2 / 3]]))
    # an unjudged row is in no baseline
    of_three = otb(torch.tensor([1.0, NAN, 0.0]), 3, mask[[0, 0, 1]], probs[[0, 0, 1]].log(), squares[[0, 0, 1]])
    torch.testing.assert_close(of_three[[0, 2]], found)
    assert of_three[1].isnan().all()


def test_places_count_what_the_loss_counts_and_the_last_one_alone_has_no_rival():
    half = torch.full((2, 4), 0.5)
    mask = torch.tensor([[1, 0, 1, 1], [1, 1, 0, 0]])
    found = otb(torch.tensor([1.0, 0.0]), 2, mask, half.log(), half)
    # places 0 and 1 of both: equal energies; place 2 of the first row alone
    torch.testing.assert_close(found, torch.tensor([[0.5, 0.0, 0.5, 0.0], [-0.5, -0.5, 0.0, 0.0]]))
    assert otb(torch.tensor([1.0, 0.0]), 2, mask, half.log(), half, zero_tail=True)[0, 3] == 1.0
