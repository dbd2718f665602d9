"""Prompts as data sets write them: what becomes of each form, and those that are refused."""

from typing import Any

USER = {"role": "user", "content": "What is 2 + 2?"}
SYSTEM = {"role": "system", "content": "Be brief."}
CONVERTED: dict[str, tuple[Any, list[dict[str, str]]]] = {
    "ShareGPT with a system turn": (
        [{"from": "system", "value": "Be brief."}, {"from": "human", "value": "What is 2 + 2?"}],
        [SYSTEM, USER],
    ),
    "one message": ({"role": "user", "content": "What is 2 + 2?"}, [USER]),
    "text that begins with a bracket": (
        "[3, 4] What is the sum?",
        [{"role": "user", "content": "[3, 4] What is the sum?"}],
    ),
    "ShareGPT, several turns, with a weight": (
        [
            {"from": "human", "value": "Hi", "weight": None},
            {"from": "gpt", "value": "Hello", "weight": 1},
            {"from": "human", "value": "What is 2 + 2?", "weight": None},
        ],
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, USER],
    ),
    "two text parts": (
        [{"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "2 + 2?"}]}],
        [USER],
    ),
    "a system and a user message": ([SYSTEM, USER], [SYSTEM, USER]),
    "a message of a developer": (
        [{"role": "developer", "content": "Be brief."}, USER],
        [{"role": "developer", "content": "Be brief."}, USER],
    ),
}
REFUSED: dict[str, Any] = {
    "nothing": None,
    "nothing in the place of a message": [None, USER],
    "messages as JSON": '[{"role": "user", "content": "q"}]',
    "an unknown role": [{"role": "human", "content": "q"}],
    "an image": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
    "a list of texts": ["q", "r"],
    "ShareGPT with an unknown speaker": [{"from": "narrator", "value": "q"}],
    "messages as Python's text": "[{'role': 'user', 'content': 'q'}]",
    "a list of conversations": [[USER], [USER]],
    "a call of a tool": [USER, {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}],
    "a row of messages as JSON": '{"prompt": [{"role": "user", "content": "q"}], "id": 3}',
}
