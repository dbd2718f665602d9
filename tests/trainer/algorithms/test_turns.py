"""Turns of a response: their signals, and that no strategy minds what tools inserted between them."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, TOKEN_WEIGHT, UPDATE_SCHEDULE
from evenkeel.trainer.algorithms.registry import find_strategy
from evenkeel.trainer.algorithms.results import checked_advantages, checked_factors
from evenkeel.trainer.algorithms.trial import tried_schedule
from evenkeel.trainer.algorithms.turns import turn_column, turn_numbers, turn_returns
from tests.trainer.algorithms.test_every_strategy import GROUP_SIZE, LONGEST, batches, fresh, names

NAN = float("nan")
MASK = torch.tensor([[1, 1, 0, 0, 1, 0, 1, 1, 0], [1, 1, 1, 0, 0, 0, 0, 0, 0], [0] * 9, [0, 0, 1, 0, 1, 1, 1, 1, 1]])


def test_turns_are_the_runs_of_counted_tokens():
    expected = [[0, 0, -1, -1, 1, -1, 2, 2, -1], [0, 0, 0, *[-1] * 6], [-1] * 9, [-1, -1, 0, -1, 1, 1, 1, 1, 1]]
    assert turn_numbers(MASK).tolist() == expected


def test_a_list_of_each_row_becomes_a_number_of_each_turn():
    logged = [[0.5, None, 2], [0.25, 0.5], [9.0, 9.0, 9.0], None]  # row 1: an answer cut to nothing was paid .5
    expected = torch.tensor([[0.5, 0.0, 2.0], [0.75, NAN, NAN], [NAN] * 3, [0.0, 0.0, NAN]])
    torch.testing.assert_close(turn_column("turn_rewards", logged, MASK), expected, equal_nan=True)

    keys = turn_column("state_keys", [["a", "b", "a"], ["b"], ["a"], [None, "c"]], MASK)
    (a, b, again), (of_next_row, *rest), none, (unknown, c, _) = keys.tolist()
    assert (a, b, rest, none, unknown) == (again, of_next_row, [-1, -1], [-1] * 3, -1)
    assert len({a, b, c}) == 3
    assert min(a, b, c) >= 0
    assert turn_column("state_keys", [["b"]], MASK[1:2]).tolist() == [[b]]  # whatever else is in the batch


@pytest.mark.parametrize(
    ("name", "entries", "said"),
    [
        ("turn_rewards", [0.0] * 5, "row 0 has 3 turns"),
        ("turn_rewards", ["1"], "a list with one number for each"),
        ("state_keys", [3], "a list with one text for each"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(name: str, entries: Any, said: str):
    with pytest.raises(ValueError, match=said):
        turn_column(name, [entries], MASK[:1])


def test_the_outcome_is_earned_by_the_last_turn():
    # γ = 1/2. Row 0: 2 + 1 = 3; 1 + 3/2; 0 + 2.5/2. Row 1: 4 + 0. Row 2 has no turns; row 3 was not scored.
    paid = torch.tensor([[0.0, 1.0, 2.0], [0.0, NAN, NAN], [NAN] * 3, [1.0, 1.0, NAN]])
    expected = torch.tensor([[1.25, 2.5, 3.0], [4.0, NAN, NAN], [NAN] * 3, [NAN] * 3])
    torch.testing.assert_close(turn_returns(torch.tensor([1.0, 4.0, 4.0, NAN]), paid, 0.5), expected, equal_nan=True)


def with_tools(signals: dict[str, Any]) -> tuple[dict[str, Any], Tensor]:
    """The batch with two inserted tokens in each row that reaches its group's place for them; where its own are now.

    A group inserts the same at one place, and rows end with a token of their own, so that prefixes are shared as they
    were; all but the ids is drawn at random.
    """
    mask = (torch.arange(LONGEST) < signals["mask"].sum(1)[:, None]).long()
    ids = (signals["completion_ids"] * mask).scatter(1, mask.sum(1, keepdim=True) - 1, 9)
    signals |= {"mask": mask, "completion_ids": ids, "lengths": mask.sum(1)}
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(1, 4, (len(mask) // GROUP_SIZE, 1), generator=generator).repeat_interleave(GROUP_SIZE, 0)
    pause = 2 * (mask.gather(1, first) > 0)
    place = torch.arange(LONGEST) + pause * (torch.arange(LONGEST) >= first)

    def inserted(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.shape != mask.shape:
            return value
        drawn = -3 * torch.rand(len(mask), LONGEST + 2, generator=generator)
        longer = drawn if value.is_floating_point() else torch.zeros(drawn.shape, dtype=value.dtype)
        return longer.scatter(1, place, value)

    found = {name: inserted(value) for name, value in signals.items()}
    found["completion_ids"].scatter_(1, first, torch.where(pause > 0, 7, found["completion_ids"].gather(1, first)))
    turns = found["turns"] = turn_numbers(found["mask"])
    kept = torch.arange(2) <= turns.amax(1)[:, None]
    paid = torch.rand(kept.shape, generator=generator).where(kept, torch.nan)
    of_turns = {"turn_rewards": paid, "state_keys": (~kept).long().neg()}
    signals |= {"turns": turns.gather(1, place) * mask - (1 - mask), **of_turns}
    return found | of_turns, place


ALL = [(kind, name) for kind in (ADVANTAGE, TOKEN_WEIGHT, COEFFICIENT, UPDATE_SCHEDULE) for name in names(kind)]


def applied(kind: str, name: str, signals: dict[str, Any]) -> Tensor:
    """(N, T): the advantages, the factors, or which pass trains the token."""
    mask = signals["mask"]
    if kind == UPDATE_SCHEDULE:
        schedule = tried_schedule(find_strategy(kind, name))
        passes = range(schedule.num_passes)
        kept = [schedule.kept(signals["probs"], mask, index, signals["row_keys"]) for index in passes]
        return sum((index + 1) * keep.float() for index, keep in zip(passes, kept, strict=True))
    strategy = fresh(kind, name, signals)
    result = strategy(signals)
    if kind == ADVANTAGE:
        result = checked_advantages(strategy, result, signals["rewards"], GROUP_SIZE, mask.shape[1], "in a test")
        return result if result.dim() == 2 else result[:, None].expand(mask.shape)
    return checked_factors(strategy, result, mask, "in a test")


@pytest.mark.parametrize(("kind", "name"), ALL)
@settings(max_examples=3, derandomize=True, deadline=None)
@given(signals=batches())
def test_what_a_tool_inserts_changes_nothing_for_the_tokens_of_the_policy(
    kind: str, name: str, signals: dict[str, Any]
):
    found, place = with_tools(signals)
    try:
        alone = applied(kind, name, signals)
    except ValueError:  # refused in words: rewards that its formula has no answer for
        return
    beside = applied(kind, name, found)
    mask = signals["mask"].bool()
    torch.testing.assert_close(beside.gather(1, place)[mask], alone[mask], equal_nan=True, rtol=1e-5, atol=1e-6)
    if kind != ADVANTAGE:  # what an estimator says of them meets no token: the mask of the loss is 0
        assert (beside[found["mask"] == 0] == 0).all()
