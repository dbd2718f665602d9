"""Calls of different rows are made at once (`tests.trainer.step.test_environments`), those of one row in order."""

from typing import Any

import pytest

from evenkeel.rewards.environments import build_environment


def turn(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    functions = [{"type": "function", "function": {"name": name, "arguments": given}} for name, given in calls]
    return {"role": "assistant", "content": "", "tool_calls": functions}


def made(rows: int) -> list[Any]:
    kind = build_environment("tests.rewards.environments.parts:Diary")
    environments = [kind() for _ in range(rows)]
    for environment in environments:
        environment.reset()
    return environments


def test_the_calls_of_a_row_keep_their_order_and_what_they_raise():
    environments = made(rows=2)
    asked = [
        turn(("write", {"text": "a"}), ("write", {"text": ""}), ("write", {"text": "b"})),
        turn(("write", {"text": "c"})),
    ]
    with type(environments[0])._side_by_side(environments, [[each] for each in asked]):
        assert environments[0].write(text="a") == "1 lines"
        assert len(environments[1].calls) == 1, "made together with the first row's"
        with pytest.raises(ValueError, match="nothing to write"):
            environments[0].write(text="")
        assert environments[0].write(text="b") == "2 lines"
        assert environments[1].write(text="c") == "1 lines"
    assert [(call.name, call.state) for call in environments[0].calls] == [
        ("write", ""),
        ("write", "a"),
        ("write", "a"),
    ]


def test_a_turn_whose_answer_trl_drops_is_not_called_again():
    environments = made(rows=2)
    first, second = [turn(("write", {"text": "a"}))], [turn(("write", {"text": "b"}))]
    with type(environments[0])._side_by_side(environments, [first, second]):
        environments[0].write(text="a")
        environments[1].write(text="b")
        first += [{"role": "tool", "content": "a"}, turn(("write", {"text": "c"}))]  # too long in the second row
        assert environments[0].write(text="c") == "2 lines"
    assert environments[1].write(text="d") == "2 lines"
    assert environments[1].calls[-1].state == "b"


def test_what_no_tool_is_named_and_what_was_not_foreseen():
    environments = made(rows=1)
    messages = [turn(("reset", {}), ("_made", {}), ("shout", {}), ("write", {"text": "a"}), ("write", "no mapping"))]
    with type(environments[0])._side_by_side(environments, [messages]):
        assert environments[0].write(text="other") == "2 lines", "made when it is asked for"
    assert environments[0].write(text="after") == "3 lines"
    assert environments[0].calls[-1].state == "a other"
