"""DisCO and REAL: the advantage is the gradient of the objective; the authors' gradients are in golden.json."""

import torch

from evenkeel.trainer.algorithms.advantages.discriminative import disco, real


def test_very_unlikely_answers_stay_finite():
    logps = torch.tensor([[-1.0], [-5000.0], [-9000.0]])
    result = disco(torch.tensor([1.0, 0.0, 0.0]), 3, logps, torch.ones(3, 1, dtype=torch.long), tau=1.0)
    assert result.tolist() == [1.0, -1.0, 0.0]


def test_labels_count_by_how_many_there_are_of_their_kind():
    # τ = 1/2: two right ones 2/(1 + 2), three wrong ones −2/(1 + 3); a group of one kind 0
    rewards = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25])
    lengths = torch.tensor([4, 2, 1, 4, 2, 1, 1, 1, 1, 1])
    expected = torch.tensor([2 / 3, -0.5, -0.5, 2 / 3, -0.5, 0, 0, 0, 0, 0])
    torch.testing.assert_close(real(rewards, 5, lengths), expected)
    torch.testing.assert_close(real(rewards, 5, lengths, length_normalised=True), expected / lengths)
