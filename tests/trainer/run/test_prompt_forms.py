"""Every form of a prompt is converted or refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import Source
from evenkeel.trainer.run.data import load_rows
from evenkeel.trainer.run.data.conversations import ROLES, conversations
from tests.trainer.run.prompt_forms import CONVERTED, REFUSED


@pytest.mark.parametrize("name", CONVERTED)
def test_a_form_is_converted(name: str) -> None:
    prompt, expected = CONVERTED[name]
    assert conversations([prompt], None, "rows.jsonl", "question") == [expected]


@pytest.mark.parametrize("name", REFUSED)
def test_a_form_is_refused_with_its_row(name: str) -> None:
    with pytest.raises(Refusal, match="row 1 "):
        conversations(["q", REFUSED[name]], None, "rows.jsonl", "question")


KEYS = st.sampled_from(["role", "content", "from", "value", "type", "text", "messages", "tool_calls", "x"])
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([*ROLES, "human", "text", "", "q"])
JSON = st.recursive(
    VALUES,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(KEYS, inside, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_value_becomes_messages_or_is_refused(value: Any) -> None:
    try:
        (messages,) = conversations([value], None, "rows.jsonl", "question")
    except Refusal:
        return
    assert all(message["role"] in ROLES and isinstance(message["content"], str) for message in messages)


def test_two_columns_that_hold_the_same_are_refused() -> None:
    made = [{"prompt": f"{n} + 1?", "reference": f"{n} + 1?"} for n in range(3)]
    source = Source.model_validate({"generator": "made"})
    with pytest.raises(Refusal, match="in every row what 'prompt' does"):
        load_rows([source], generators={"made": lambda: made}, system_prompt=None, base_dir=Path())
    made[0]["reference"] = "1"
    assert len(load_rows([source], generators={"made": lambda: made}, system_prompt=None, base_dir=Path())) == 3
