"""Calls of different rows are made at once (`tests.trainer.step.test_environments`), those of one row in order."""

from typing import Any

import pytest

from evenkeel.rewards.environments import build_environment


class Speaking:
    """Answers with all that was said."""

    def reset(self, **_: Any) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> str:
        """Say something.

        Args:
            text: What.
        """
        if not text:
            raise ValueError("say something")
        self.said.append(text)
        return " ".join(self.said)


def turn(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    functions = [{"type": "function", "function": {"name": name, "arguments": given}} for name, given in calls]
    return {"role": "assistant", "content": "", "tool_calls": functions}


def made(rows: int) -> list[Any]:
    kind = build_environment(f"{__name__}:Speaking")
    environments = [kind() for _ in range(rows)]
    for environment in environments:
        environment.reset()
    return environments


def test_the_calls_of_a_row_keep_their_order_and_what_they_raise():
    environments = made(rows=2)
    asked = [turn(("say", {"text": "a"}), ("say", {"text": ""}), ("say", {"text": "b"})), turn(("say", {"text": "c"}))]
    with type(environments[0])._side_by_side(environments, [[each] for each in asked]):
        assert environments[0].say(text="a") == "a"
        assert len(environments[1].calls) == 1, "made together with the first row's"
        with pytest.raises(ValueError, match="say something"):
            environments[0].say(text="")
        assert environments[0].say(text="b") == "a b"
        assert environments[1].say(text="c") == "c"
    assert [call.name for call in environments[0].calls] == ["say"] * 3


def test_a_turn_whose_answer_trl_drops_is_not_called_again():
    environments = made(rows=2)
    first, second = [turn(("say", {"text": "a"}))], [turn(("say", {"text": "b"}))]
    with type(environments[0])._side_by_side(environments, [first, second]):
        environments[0].say(text="a")
        environments[1].say(text="b")
        first += [{"role": "tool", "content": "a"}, turn(("say", {"text": "c"}))]  # too long in the second row
        assert environments[0].say(text="c") == "a c"
    assert environments[1].say(text="d") == "b d"


def test_what_no_tool_is_named_and_what_was_not_foreseen():
    environments = made(rows=1)
    messages = [turn(("reset", {}), ("_made", {}), ("shout", {}), ("say", {"text": "a"}), ("say", "no mapping"))]
    with type(environments[0])._side_by_side(environments, [messages]):
        assert environments[0].say(text="other") == "a other", "made when it is asked for"
    assert environments[0].say(text="after") == "a other after"
