"""What the trial of a part finds: axes confused, draws, hidden memory, what begins late."""

import pytest
import torch

from evenkeel.trainer.algorithms import advantages
from evenkeel.trainer.algorithms.contract import ADVANTAGE, PROMPT_SAMPLER, TOKEN_WEIGHT, Traits, traits
from evenkeel.trainer.algorithms.prompt_samplers import uniform
from evenkeel.trainer.algorithms.registry import find_strategy
from evenkeel.trainer.algorithms.trial import separable
from tests.trainer.algorithms.test_registry import build, refused


def transposed(rewards, group_size):
    columns = rewards.view(group_size, -1)
    return (columns - columns.nanmean(0)).flatten()


def test_an_estimator_that_looks_at_other_groups_says_so(monkeypatch):
    refused(ADVANTAGE, transposed, "part", "depends_on_other_groups=True")
    monkeypatch.setattr(transposed, "traits", Traits(depends_on_other_groups=True), raising=False)
    assert build(ADVANTAGE, transposed).traits.depends_on_other_groups


class PerBatch:
    """A baseline of this batch, seen before it is subtracted."""

    def __init__(self):
        self.mean = 0.0

    def __call__(self, rewards):
        self.mean = 0.5 * self.mean + 0.5 * float(rewards.nanmean())
        return rewards - self.mean

    def state_dict(self):
        return {"mean": self.mean}

    def load_state_dict(self, state):
        self.mean = state["mean"]


class OfEarlierBatches(PerBatch):
    """The same, subtracted before it is seen: no row of the batch changes another's."""

    def __call__(self, rewards):
        result = rewards - self.mean
        super().__call__(rewards)
        return result


def test_a_running_baseline_is_of_the_batches_before():
    refused(ADVANTAGE, PerBatch, "part", "depends_on_other_groups=True")
    assert build(ADVANTAGE, OfEarlierBatches).has_state


def torch_draw(rewards, group_size):
    return advantages.dr_grpo(rewards, group_size) * (1 + torch.rand(()))


def test_a_part_that_draws_says_so():
    refused(ADVANTAGE, torch_draw, "part", "'torch_draw'", "row_draws(row_keys, mask, seed)", "draws_at_random=True")


CALLS: list[int] = []


def counts_calls(probs):
    CALLS.append(1)
    return torch.full_like(probs, float(len(CALLS)))


class ForgetsToSave(OfEarlierBatches):
    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


@pytest.mark.parametrize(("kind", "part"), [(TOKEN_WEIGHT, counts_calls), (ADVANTAGE, ForgetsToSave)])
def test_what_is_remembered_is_in_the_state(kind, part):
    refused(kind, part, "part", "state_dict and load_state_dict")


@traits(draws_at_random=True)
class AnyPrompts(uniform):
    def __call__(self, count, num_prompts, seed):
        return torch.randperm(num_prompts)[:count].tolist()


def test_a_sampler_chooses_alike_on_all_processes():
    refused(PROMPT_SAMPLER, AnyPrompts, "part", "row_draws")


def test_a_part_is_tried_at_later_steps_too():
    def negative_late(probs, step, max_steps):
        return torch.full_like(probs, 0.9 - step / max_steps)

    refused(TOKEN_WEIGHT, negative_late, "part", "at step 999 of 1000", "-0.099")


def test_a_part_that_looks_at_the_whole_microbatch_later_depends_on_the_cut():
    def mean_later(probs, step, max_steps):
        return 1.0 - step / max_steps * probs.mean().expand_as(probs)

    def one_row_later(probs, step, max_steps):
        return 1.0 - step / max_steps * probs.mean(1, keepdim=True).expand_as(probs)

    assert build(TOKEN_WEIGHT, mean_later).traits.depends_on_the_cut
    assert not separable(find_strategy(TOKEN_WEIGHT, mean_later), 1)
    assert not build(TOKEN_WEIGHT, one_row_later).traits.depends_on_the_cut
    assert separable(find_strategy(TOKEN_WEIGHT, one_row_later), 1)


def test_an_own_part_with_the_name_of_one_that_ships_is_another():
    def rloo(rewards, mask):
        return rewards[:, None].expand(mask.shape)

    assert build(ADVANTAGE, rloo).token_level
    assert not build(ADVANTAGE, "rloo").token_level
