"""Tokens read like the text, and weigh what the run's own strategy says."""

import pytest
from tokenizers import ByteLevelBPETokenizer

from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.lab.rollouts.tokens import WeighedTokens, token_pieces

ROW = {"completion_ids": [5, 6, 7], "advantage": -2.0, "advantages": None, "mask": None, "group": 0, "reward": 0.0}
SCORES = {"old_logps": [0.0, -0.6931471805599453, -2.0], "entropies": None}


@pytest.mark.parametrize("text", ["plain words", "naïve 日本語 🙂 end", "🙂🙂", ""])
def test_pieces_put_together_are_the_text(text: str):
    """A tokenizer of bytes alone, whose tokens are parts of characters."""
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(["a"], vocab_size=257, show_progress=False)
    ids = tokenizer.encode(text).ids
    pieces = token_pieces(ids, lambda part: tokenizer.decode(list(part)))
    assert len(pieces) == len(ids) == len(text.encode())
    assert "".join(pieces) == text


def test_weights_are_the_strategys():
    """AR: w = α π + 1 − α = .4 + .6·(1, ½, e⁻²), times the advantage −2."""
    weigh = WeighedTokens(build_strategies(token_weight={"name": "adv_reweight", "alpha": 0.6}), 10)
    (values,) = weigh.of_group([{**ROW, **SCORES, "step": 3}])
    assert values == pytest.approx([-2.0, -1.4, -2 * (0.4 + 0.6 * 0.1353353)])
    assert "adv_reweight" in weigh.note


def test_without_what_a_weight_needs_the_advantage_stands_alone_and_that_is_said():
    unscored = {**ROW, "old_logps": None, "entropies": None, "step": 3}
    weigh = WeighedTokens(build_strategies(token_weight="adv_reweight"), 10)
    assert weigh.of_group([unscored]) == [-2.0]
    assert weigh.note.startswith("The advantage alone: token weight 'adv_reweight' needs π_old")
    by_entropy = WeighedTokens(build_strategies(token_weight="top_entropy"), 10)
    assert by_entropy.of_group([{**ROW, **SCORES, "step": 3}]) == [-2.0]
    assert "needs entropies" in by_entropy.note


def test_tokens_that_no_loss_counts_weigh_nothing():
    weigh = WeighedTokens(build_strategies(), 10)
    rows = [{**ROW, **SCORES, "step": 0, "mask": [True, False, True], "advantages": [1.0, 2.0, 3.0]}]
    assert weigh.of_group(rows) == [[1.0, 0.0, 3.0]]
