"""Prompts as data sets write them: what becomes of each form, and of those refused the words that name it."""

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
    "ShareGPT, one mapping": ({"from": "human", "value": "What is 2 + 2?"}, [USER]),
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
REFUSED: dict[str, tuple[Any, str, str]] = {
    "nothing": (None, "are empty", "Drop these rows"),
    "nothing in the place of a message": ([None, USER], "hold NoneType", "{role: user, content: …}"),
    "messages as JSON": ('[{"role": "user", "content": "q"}]', "JSON", "json.loads"),
    "an unknown role": ([{"role": "human", "content": "q"}], "role 'human'", "user"),
    "messages in a mapping": ({"messages": [USER]}, "messages", "{prompt: question.messages}"),
    "an image": (
        [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "q"}],
            }
        ],
        "image_url",
        "text",
    ),
    "a number": (7, "number", "text"),
    "a list of texts": (["q", "r"], "list of texts", "role"),
    "ShareGPT with an unknown speaker": ([{"from": "narrator", "value": "q"}], "'narrator'", "human"),
    "messages as Python's text": ("[{'role': 'user', 'content': 'q'}]", "Python", "ast.literal_eval"),
    "true": (True, "true or false", "text"),
    "a list of conversations": ([[USER], [USER]], "list of conversations", "row"),
    "text under another key": ([{"role": "user", "text": "q"}], "text", "content"),
    "a call of a tool": (
        [USER, {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}],
        "tool_calls",
        "text",
    ),
    "a row of messages as JSON": ('{"prompt": [{"role": "user", "content": "q"}], "id": 3}', "JSON", "json.loads"),
}
