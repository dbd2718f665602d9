"""Options and rewards that a formula has no answer for."""

import pytest
import torch

from evenkeel.trainer.algorithms.advantages import (
    backward_corrected,
    bnpo_beta,
    entropy_shaped,
    ibpo,
    lambda_grpo,
    maxrl,
    pass_at_k,
    real,
    turn_discounted,
)

TWO, ONES, COLUMN = torch.tensor([1.0, 0.0]), torch.ones(2, 1).long(), torch.zeros(2, 1)
SIZES = torch.ones(83).long()
REFUSED = {
    "a reward out of the range of a density": lambda: bnpo_beta(torch.tensor([2.0, 2.0, 1.0, 0.0]), 2),
    "a density over no interval": lambda: bnpo_beta(TWO, 2, lowest=1.0, highest=1.0),
    "a temperature of zero": lambda: real(TWO, 2, ONES[:, 0], tau=0.0),
    "a cap that could turn the sign": lambda: entropy_shaped(TWO, 2, COLUMN, kappa=1.0),
    "a weight that ties right and repaired": lambda: ibpo(TWO, 2, TWO, TWO, COLUMN, lam=1.0),
    "no weight of a repair": lambda: ibpo(TWO, 2, TWO, TWO, COLUMN, rho=0.0),
    "rates that leave nothing": lambda: backward_corrected(TWO, false_positive=0.5, false_negative=0.5),
    # (G − 1)/√G passes 9 between G = 82 (8.94) and G = 83 (9.0003)
    "a group that could reach a power of zero": lambda: lambda_grpo(torch.zeros(83), 83, SIZES),
    "a negative reward": lambda: maxrl(torch.tensor([1.0, -0.5]), 2),
    "a k that no group can fill": lambda: pass_at_k(torch.zeros(4), 4, k=5),
    "a discount that grows": lambda: turn_discounted(TWO, 2, ONES - 1, COLUMN, gamma=1.1),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_formula_has_no_answer_for_is_refused(what):
    with pytest.raises(ValueError, match=r"\w"):
        REFUSED[what]()
