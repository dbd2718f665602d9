"""Token weights that choose tokens: by covariance (Clip-Cov), by entropy (80/20), by both improbability and entropy."""

import pytest
import torch

from evenkeel.trainer.algorithms.row_draws import row_keys
from evenkeel.trainer.algorithms.token_weights.covariance import clip_cov
from evenkeel.trainer.algorithms.token_weights.entropy import relative_surprisal, stapo, top_entropy
from tests.trainer.algorithms.published import published_cases

KEYS = row_keys(16, 0)


def ones(*shape):
    return torch.ones(*shape, dtype=torch.long)


@pytest.mark.parametrize("case", published_cases("token_weights", "clip_cov"), ids=lambda case: str(case["options"]))
def test_the_tokens_that_clip_cov_can_drop_are_the_authors(case):
    weights = clip_cov(case["old_logps"], case["advantages"], case["mask"], KEYS[:4], **case["options"])
    assert torch.equal(weights * case["mask"], case["weights"])
    assert (case["weights"] * case["mask"] < case["mask"]).any()


def test_clip_cov_draws_by_seed_and_the_same_tokens_again():
    logps = -3 * torch.rand(16, 32, generator=torch.Generator().manual_seed(0))
    signal = torch.where(torch.arange(16)[:, None] % 2 == 0, 2.0, -2.0).expand(16, 32).contiguous()
    options = {"share": 0.05, "lower": 0.5}
    weights = clip_cov(logps, signal, ones(16, 32), KEYS, **options)
    assert (weights == 0).sum() == int(0.05 * 16 * 32)
    assert torch.equal(weights, clip_cov(logps, signal, ones(16, 32), KEYS, **options))
    assert not torch.equal(weights, clip_cov(logps, signal, ones(16, 32), KEYS, seed=1, **options))
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    assert torch.equal(clip_cov(logps[order], signal[order], ones(16, 32), KEYS[order], **options), weights[order])


def test_clip_cov_refuses_bounds_between_which_no_token_lies():
    with pytest.raises(ValueError, match="lower"):
        clip_cov(torch.zeros(2, 3), torch.ones(2, 3), ones(2, 3), KEYS[:2], lower=5.0, upper=5.0)


def test_the_top_fifth_by_entropy_is_trained():
    # ten tokens with H = 0 … 9: the .8 quantile is 7.2, so 8 and 9
    values = torch.arange(10.0).view(2, 5)
    assert top_entropy(values, ones(2, 5)).tolist() == [[0.0] * 5, [0.0, 0.0, 0.0, 1.0, 1.0]]
    within = top_entropy(values, ones(2, 5), within="response", others=0.25)  # quantile .8 of five: 3.2, so the fifth
    assert within.tolist() == [[0.25] * 4 + [1.0]] * 2


def test_entropies_of_padding_do_not_count():
    values, mask = torch.tensor([[1.0, 2.0, 99.0, 99.0]]), torch.tensor([[1, 1, 0, 0]])
    assert top_entropy(values, mask, share=0.5)[0, :2].tolist() == [0.0, 1.0]
    assert (top_entropy(values, torch.zeros_like(mask)) == 0).all()


def test_stapo_by_hand():
    probs = torch.tensor([[0.001, 0.001, 0.001, 0.001, 0.9], [0.001, 0.001, 0.9, 0.9, 0.9]])
    entropy = torch.tensor([[0.1, 0.2, 0.3, 0.4, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    signal = torch.tensor([[1.0], [-1.0]]).expand(2, 5)
    # improbable tokens of the good answer: H = .1 … .4, their .75 quantile is .325, so the first three are silenced
    expected = torch.tensor([[0.0, 0.0, 0.0, 1.0, 1.0], [1.0] * 5])
    torch.testing.assert_close(stapo(probs, entropy, signal, ones(2, 5), renormalize=False), expected)
    # 7 of 10 tokens are left: divided by .7
    torch.testing.assert_close(stapo(probs, entropy, signal, ones(2, 5)), expected / 0.7)


def test_tokens_are_kept_by_their_surprisal_in_units_of_the_entropy():
    # surprisals .05, .1, 1, 3, 3.1 over an entropy of 1; the last policy is certain, and the token from nowhere
    logps = -torch.tensor([[0.05, 0.1001, 1.0, 2.999, 3.1, 0.0, 5.0]])
    entropy = torch.tensor([[1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]])
    assert relative_surprisal(logps, entropy).tolist() == [[0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]
    assert relative_surprisal(logps, 2 * entropy, lower=0.4, upper=1.5).tolist() == [[0, 0, 1, 1, 0, 0, 0]]
