"""What `RLVRTrainer` assumes about TRL and no training would notice in time; all else breaks with the first of them."""

import inspect
import re

import pytest
from transformers import Trainer
from trl import GRPOTrainer
from trl.trainer.utils import RepeatSampler

from evenkeel.trainer import step
from evenkeel.trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN
from evenkeel.trainer.step.rollout import EpochSampler
from evenkeel.trainer.step.trainer import RLVRTrainer


def test_another_trl_is_warned_of():
    step.check_release("1.16.4")
    with pytest.warns(UserWarning, match=r"TRL 1\.17\.0\.dev0 .*pip install 'trl<1.17,>=1.16'"):
        step.check_release("1.17.0.dev0")


def test_a_trl_whose_method_is_gone_or_takes_other_arguments_is_refused():
    class Reordered(GRPOTrainer):
        def _calculate_rewards(self, inputs, completions, prompts, completion_ids_list): ...

    for other, name in ((Reordered, "_calculate_rewards"), (Trainer, "_prepare_inputs")):
        with pytest.raises(ImportError, match=rf"{name}\("):
            step.check_methods(other)


def test_all_methods_that_are_replaced_are_checked():
    replaced = {name for name in vars(RLVRTrainer) if hasattr(GRPOTrainer, name) and not name.startswith("__")}
    assert {name for name in replaced if callable(vars(RLVRTrainer)[name])} <= {*re.findall(r"(\w+)\(", step.METHODS)}


def test_every_loss_type_of_trl_is_classified():
    """A new loss type must be put into `trainer.algorithms.sequence_weights`, or named among those without a weight."""
    source = inspect.getsource(GRPOTrainer._compute_loss)
    lists = re.findall(r"self\.loss_type (?:in \[([^\]]*)\]|== (\"\w+\"))", source)
    named = {name for group in lists for name in re.findall(r"\"(\w+)\"", "".join(group))}
    assert named == PER_SEQUENCE_MEAN | ONE_DENOMINATOR | {"bnpo", "vespo"}


def test_the_samplers_order_at_epoch_e_is_the_stock_samplers_eth_pass():
    stock = RepeatSampler(range(10), mini_repeat_count=2, batch_size=3, repeat_count=2, seed=4)
    passes = [list(stock) for _ in range(3)]
    assert passes[0] != passes[1]
    ours = EpochSampler(RepeatSampler(range(10), mini_repeat_count=2, batch_size=3, repeat_count=2, seed=4))
    for epoch in (2, 0, 1):  # also when a run resumes in a later epoch
        ours.set_epoch(epoch)
        assert list(ours) == passes[epoch]
    assert len(ours) == len(stock)
