"""Options and rewards that a formula has no answer for."""

import pytest
import torch

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.advantages import (
    backward_corrected,
    bnpo_beta,
    exchangeable_prefix_tree,
    lambda_grpo,
    maxrl,
    pass_at_k,
)
from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, PROMPT_SAMPLER, TOKEN_WEIGHT, UPDATE_SCHEDULE
from evenkeel.trainer.algorithms.registry import find_strategy

TWO = torch.tensor([1.0, 0.0])
REFUSED = {
    "a reward out of the range of a density": lambda: bnpo_beta(torch.tensor([2.0, 2.0, 1.0, 0.0]), 2),
    "a density over an interval turned around": lambda: bnpo_beta(TWO, 2, lowest=1.0, highest=0.0),
    "rates that leave nothing": lambda: backward_corrected(TWO, false_positive=0.5, false_negative=0.5),
    # (G − 1)/√G passes 9 between G = 82 (8.94) and G = 83 (9.0003)
    "a group that could reach a power of zero": lambda: lambda_grpo(torch.zeros(83), 83, torch.ones(83).long()),
    "a negative reward": lambda: maxrl(torch.tensor([1.0, -0.5]), 2),
    "a k that no group can fill": lambda: pass_at_k(torch.zeros(4), 4, k=5),
    "unequal weights": lambda: exchangeable_prefix_tree(TWO, 2, torch.zeros(2, 1).long(), torch.tensor([1.0, 0.5])),
}
OUT_OF_RANGE = [
    (ADVANTAGE, "real", "tau", 0.0),
    (ADVANTAGE, "entropy_shaped", "kappa", 1.0),
    (ADVANTAGE, "ibpo", "lam", 1.0),
    (ADVANTAGE, "turn_discounted", "gamma", 1.1),
    (ADVANTAGE, "gpg", "f_norm", -1.0),  # and below: what would turn advantages around
    (ADVANTAGE, "w_reinforce", "positive_weight", -0.1),
    (ADVANTAGE, "grpo_lead", "greatest", -1.0),
    (ADVANTAGE, "unlikeliness", "rank_penalty", 1.5),
    (ADVANTAGE, "gtpo", "alpha_2", -0.1),
    (ADVANTAGE, "turn_grpo", "turn_weight", -1.0),
    (TOKEN_WEIGHT, "adv_reweight", "alpha", float("nan")),
    (TOKEN_WEIGHT, "rlcsd", "temperature", 0.0),
    (COEFFICIENT, "aspo", "epsilon_low", 1.0),
    (UPDATE_SCHEDULE, "lopti", "eta", 1.0),
    (PROMPT_SAMPLER, "dynamic", "max_rounds", 0),
]


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_formula_has_no_answer_for_is_refused(what):
    with pytest.raises(ValueError, match=r"\w"):
        REFUSED[what]()


@pytest.mark.parametrize(("kind", "name", "option", "value"), OUT_OF_RANGE)
def test_an_option_out_of_its_range_is_refused(kind, name, option, value):
    with pytest.raises(PartError) as error:
        find_strategy(kind, {"name": name, option: value})
    assert f"{option} = {value}" in str(error.value)
