"""Every form of a prompt is converted or refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import Refusal
from evenkeel.trainer.run.data.conversations import ROLES, conversations

USER = {"role": "user", "content": "What is 2 + 2?"}
SYSTEM = {"role": "system", "content": "Be brief."}
CONVERTED: dict[str, tuple[Any, list[dict[str, str]]]] = {
    "ShareGPT with a system turn": (
        [{"from": "system", "value": "Be brief."}, {"from": "human", "value": "What is 2 + 2?"}],
        [SYSTEM, USER],
    ),
    "one message": ({"role": "user", "content": "What is 2 + 2?"}, [USER]),
    "text that begins with a bracket": (
        " [3, 4] What is the sum?\n",
        [{"role": "user", "content": " [3, 4] What is the sum?\n"}],
    ),
    "two text parts": (
        [{"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "2 + 2?"}]}],
        [USER],
    ),
    "a message of a developer": (
        [{"role": "developer", "content": "Be brief."}, USER],
        [{"role": "developer", "content": "Be brief."}, USER],
    ),
}
REFUSED: dict[str, Any] = {
    "nothing": None,
    "blanks": "  \n",
    "no message": [],
    "an empty message": [{"role": "user", "content": ""}],
    "a message without content": [{"role": "user"}],
    "nothing in the place of a message": [None, USER],
    "messages as JSON": '[{"role": "user", "content": "q"}]',
    "an image": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
    "ShareGPT with an unknown speaker": [{"from": "narrator", "value": "q"}],
    "a list of conversations": [[USER], [USER]],
    "a call of a tool": [USER, {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}],
    "a row of messages as JSON": '{"prompt": [{"role": "user", "content": "q"}], "id": 3}',
}


@pytest.mark.parametrize("name", CONVERTED)
def test_a_form_is_converted(name: str) -> None:
    prompt, expected = CONVERTED[name]
    assert conversations([prompt], None, "rows.jsonl", "question") == [expected]
    if len(expected) == 1:
        assert conversations([prompt], None, "rows.jsonl", "question", raw=True) == [expected[0]["content"]]


@pytest.mark.parametrize("name", REFUSED)
def test_a_form_is_refused_with_its_row(name: str) -> None:
    with pytest.raises(Refusal, match="row 1 "):
        conversations(["q", REFUSED[name]], None, "rows.jsonl", "question")


KEYS = st.sampled_from(["role", "content", "from", "value", "type", "text", "messages", "tool_calls", "x"])
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([*ROLES, "human", "text", "", "q"])
JSON = st.recursive(
    VALUES, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(KEYS, inside, max_size=3), max_leaves=8
)


@given(JSON)
def test_any_value_becomes_messages_or_is_refused(value: Any) -> None:
    try:
        (messages,) = conversations([value], None, "rows.jsonl", "question")
    except Refusal:
        return
    assert all(message["role"] in ROLES and isinstance(message["content"], str) for message in messages)
