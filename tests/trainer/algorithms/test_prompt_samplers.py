"""Which prompts come next: walks, weights by hand, states that are read back, and what a wrong sampler is told."""

from collections import Counter
from functools import partial
from typing import Any

import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.contract import PROMPT_SAMPLER
from evenkeel.trainer.algorithms.prompt_samplers import curriculum, difficulty, dynamic, uniform, unsolved
from evenkeel.trainer.algorithms.registry import built_in
from scripts.strategy_pages import NEEDED

SAMPLERS = {name: partial(kind, **NEEDED.get(name, {})) for name, kind in built_in(PROMPT_SAMPLER).items()}


def learn(sampler: Any, prompts: list[int], shares: list[float]) -> None:
    sampler.observe(torch.tensor(prompts), torch.tensor(shares))


@pytest.mark.parametrize("walking", [uniform, dynamic, unsolved])
@given(st.integers(1, 12), st.data())
def test_no_prompt_is_ever_two_visits_ahead_of_another(walking: Any, num_prompts: int, data: st.DataObject):
    """Each walk visits each prompt once, also where it ends within a call: of visits in order, each walk is a set."""
    sampler, visits = walking(), Counter(range(num_prompts))
    for count in data.draw(st.lists(st.integers(1, num_prompts), max_size=30)):
        prompts = sampler(count, num_prompts, seed=3)
        assert len({*prompts}) == count
        visits.update(prompts)
        assert max(visits.values()) - min(visits.values()) <= 1


@pytest.mark.parametrize("name", SAMPLERS)
@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, float("nan")]), min_size=4, max_size=4), max_size=8))
def test_a_sampler_that_was_read_back_goes_on_as_the_one_that_was_saved(name: str, shares: list[list[float]]):
    sampler, again = SAMPLERS[name](), SAMPLERS[name]()
    for outcome in shares:
        prompts = sampler(4, 9, seed=1)
        assert len(set(prompts)) == 4
        assert set(prompts) <= set(range(9))
        if hasattr(sampler, "observe"):
            learn(sampler, prompts, outcome)
    again.load_state_dict(sampler.state_dict())
    assert vars(again) == vars(sampler)
    assert [again(4, 9, 1) for _ in range(5)] == [sampler(4, 9, 1) for _ in range(5)]


def test_solved_prompts_rest_and_the_longest_solved_come_back_first():
    sampler = unsolved(rest=2)
    learn(sampler, [0, 1, 2, 3], [1.0, 1.0, 0.9, float("nan")])
    assert {*sampler(3, 5, 0)} == {2, 3, 4}
    assert {*sampler(3, 5, 0)} == {2, 3, 4}
    assert sampler.walk == 1
    assert {*sampler(5, 5, 0)} == {0, 1, 2, 3, 4}  # fewer unsolved than wanted: solved ones too
    learn(sampler, [0], [0.5])
    assert 0 in sampler(4, 5, 0)
    sampler.walk = 4  # 1 was solved in walk 0 and has rested through 1 and 2
    assert sampler._awake(1)


def test_prompts_are_drawn_by_the_variance_of_their_pass_rates():
    # p = 1, ½, ⅛, 0 and one never asked: w = .1 + .9 · 4p(1 − p) = .1, 1, .49375, .1, 1
    sampler = difficulty(newest=1.0, explore=0.1)
    learn(sampler, [0, 1, 2, 3], [1.0, 0.5, 0.125, 0.0])
    weights = torch.tensor([0.1, 1.0, 0.49375, 0.1, 1.0])
    drawn = Counter(sampler(1, 5, seed=0)[0] for _ in range(4000))
    shares = torch.tensor([drawn[prompt] / 4000 for prompt in range(5)])
    assert (shares - weights / weights.sum()).abs().max() < 0.03  # four standard errors of a share of .37


def test_pass_rates_are_running_means_and_an_unscored_group_says_nothing():
    sampler = difficulty(newest=0.25)
    for share in (1.0, 0.0, float("nan")):
        learn(sampler, [7], [share])
    assert sampler.pass_rates == {7: 0.75}  # first 1, then ¾ · 1 + ¼ · 0


@pytest.mark.parametrize("seed", range(8))
def test_a_level_is_trained_until_its_running_accuracy_is_reached(seed: int):
    sampler = curriculum(column="people", levels=[3, "4", 5], up_at=0.74)
    sampler.read(Dataset.from_dict({"people": [3, 4, 3, 4, 5, 5]}))
    assert {*sampler(1, 6, seed), *sampler(1, 6, seed)} == {0, 2}
    learn(sampler, [0, 2], [1.0, 0.6])  # m = .5 · .8
    learn(sampler, [0, 2, 4], [0.8, float("nan"), 0.0])  # m = .5 · .4 + .5 · .8: unscored, of another level: nothing
    assert (sampler.level, sampler.accuracy) == (0, pytest.approx(0.6))
    learn(sampler, [0, 2], [0.8, 1.0])  # m = .5 · .6 + .5 · .9 = .75
    assert (sampler.level, sampler.accuracy) == (1, 0.0)
    assert {*sampler(1, 6, seed), *sampler(1, 6, seed)} == {1, 3}  # its own walk: both before either comes again
    for _ in range(2):  # m = .5, .75
        learn(sampler, [1, 3], [1.0, 1.0])
    assert {4, 5} < {*sampler(3, 6, seed)} < {1, 3, 4, 5}  # the nearest level fills the batch
    for _ in range(2):
        learn(sampler, [4, 5], [1.0, 1.0])
    assert (sampler.level, sampler.accuracy) == (2, 0.75)  # the last one stays


def test_all_prompts_of_the_nearest_level_fill_a_small_one_in_turn():
    sampler = SAMPLERS["curriculum"]()
    rows = Dataset.from_dict({"num_people": [3] * 4 + [4] * 12 + [5, 6, 7]})
    sampler.read(rows.select([0, 4, 16, 17, 18]))  # as for another run
    sampler.read(rows)
    visits = Counter([*sampler(8, 19, 0), *sampler(8, 19, 0)])
    state = sampler.state_dict()
    visits.update(third := sampler(8, 19, 0))
    assert visits == {**dict.fromkeys(range(4), 3), **dict.fromkeys(range(4, 16), 1)}
    sampler.load_state_dict(state)
    assert sampler(8, 19, 0) == third
