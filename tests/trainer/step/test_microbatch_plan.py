"""Cuts of lengths into micro-batches: nothing lost, nothing above the budget, no better cut of the sorted units."""

from itertools import combinations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.trainer.step.packing import planned_cuts

LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30)), min_size=8, max_size=8)


def tokens(units: list[tuple[int, int]]) -> int:
    return len(units) * (max(p for p, _ in units) + max(c for _, c in units))


@settings(max_examples=60, deadline=None)
@given(first=LENGTHS, second=LENGTHS, num_microbatches=st.sampled_from([2, 4, 8]))
def test_every_unit_is_trained_once_and_ranks_keep_step(first, second, num_microbatches):
    plan = planned_cuts(
        torch.tensor([first, second]),
        num_microbatches=num_microbatches,
        budget=8 // num_microbatches * 40,
        units_each=8 // num_microbatches,
    )
    assert [len(units) for units in plan[0]] == [len(units) for units in plan[1]]
    assert len(plan[0]) == num_microbatches
    for lengths, cut in zip((first, second), plan, strict=True):
        trained = sorted(unit for units in cut for unit in units if unit >= 0)
        assert trained == [unit for unit, (_, completion) in enumerate(lengths) if completion > 0]
        for units in cut:
            left_out = [-1 - unit for unit in units if unit < 0]
            assert len(set(left_out)) == len(left_out)
            if len(units) > 1:
                assert all(lengths[unit][1] == 0 for unit in left_out)


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, num_microbatches=st.sampled_from([2, 3, 4]), budget=st.integers(20, 320))
def test_no_cut_of_the_sorted_units_within_the_budget_has_fewer_tokens(lengths, num_microbatches, budget):
    present = sorted((pair for pair in lengths if pair[1]), key=sum, reverse=True)
    cuts = [
        [present[a:b] for a, b in zip((0, *inner), (*inner, len(present)), strict=True)]
        for number in range(min(num_microbatches, len(present)))
        for inner in combinations(range(1, len(present)), number)
    ]
    costs = [sum(map(tokens, cut)) for cut in cuts if all(tokens(units) <= budget for units in cut)]
    each = -(-8 // num_microbatches)
    (plan,) = planned_cuts(torch.tensor([lengths]), num_microbatches=num_microbatches, budget=budget, units_each=each)
    trained = [[lengths[unit] for unit in units] for units in plan if units[0] >= 0]
    if costs:
        assert sum(map(tokens, trained)) == min(costs)
    else:  # no cut keeps the budget: as many units as configured
        assert max(map(len, trained), default=0) <= each


def test_thousands_of_units_are_cut_in_blocks():
    generator = torch.Generator().manual_seed(0)
    lengths = torch.stack(
        [torch.full((2000,), 10), torch.randn(2000, generator=generator).exp().mul(100).long().clamp(1, 1000)], dim=1
    )
    (plan,) = planned_cuts(lengths[None], num_microbatches=125, budget=16 * 1010, units_each=16)
    assert sorted(unit for units in plan for unit in units if unit >= 0) == list(range(2000))
    computed = sum(tokens([tuple(lengths[u].tolist()) for u in units]) for units in plan if units[0] >= 0)
    assert computed < 1.05 * int(lengths.sum())
