"""Prompts as data sets write them: what becomes of each form, and of those refused the words that name it.

Half of each list was kept aside, unread, while the code was written: ``ASIDE``.
"""

from typing import Any

USER = {"role": "user", "content": "What is 2 + 2?"}
SYSTEM = {"role": "system", "content": "Be brief."}
CONVERTED: dict[str, tuple[Any, list[dict[str, str]]]] = {
    "ShareGPT, one turn": ([{"from": "human", "value": "What is 2 + 2?"}], [USER]),
    "ShareGPT with a system turn": (
        [{"from": "system", "value": "Be brief."}, {"from": "human", "value": "What is 2 + 2?"}],
        [SYSTEM, USER],
    ),
    "one message": ({"role": "user", "content": "What is 2 + 2?"}, [USER]),
    "one text part": ([{"role": "user", "content": [{"type": "text", "text": "What is 2 + 2?"}]}], [USER]),
    "text that begins with a bracket": (
        "[3, 4] What is the sum?",
        [{"role": "user", "content": "[3, 4] What is the sum?"}],
    ),
    "JSON that is a puzzle": (
        '{"grid": [[1, 0], [0, 1]]}',
        [{"role": "user", "content": '{"grid": [[1, 0], [0, 1]]}'}],
    ),
}
CONVERTED_ASIDE: dict[str, tuple[Any, list[dict[str, str]]]] = {
    "ShareGPT, several turns, with a weight": (
        [
            {"from": "human", "value": "Hi", "weight": None},
            {"from": "gpt", "value": "Hello", "weight": 1},
            {"from": "human", "value": "What is 2 + 2?", "weight": None},
        ],
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, USER],
    ),
    "ShareGPT, one mapping": ({"from": "human", "value": "What is 2 + 2?"}, [USER]),
    "ShareGPT with OpenAI's names": ([{"from": "user", "value": "What is 2 + 2?"}], [USER]),
    "two text parts": (
        [{"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "2 + 2?"}]}],
        [USER],
    ),
    "a text part with Arrow's empty fields": (
        [{"role": "user", "content": [{"type": "text", "text": "What is 2 + 2?", "image_url": None}]}],
        [USER],
    ),
    "a list of numbers as text": ("[1, 2, 3]", [{"role": "user", "content": "[1, 2, 3]"}]),
    "a system and a user message": ([SYSTEM, USER], [SYSTEM, USER]),
    "a question about JSON": (
        '{"role": "admin"} has which role?',
        [{"role": "user", "content": '{"role": "admin"} has which role?'}],
    ),
    "JSON of another kind": (
        '[{"role": "admin", "name": "Ann"}]',
        [{"role": "user", "content": '[{"role": "admin", "name": "Ann"}]'}],
    ),
    "a message of a developer": (
        [{"role": "developer", "content": "Be brief."}, USER],
        [{"role": "developer", "content": "Be brief."}, USER],
    ),
}
REFUSED: dict[str, tuple[Any, str, str]] = {
    "nothing": (None, "are empty", "Drop these rows"),
    "blanks": ("  ", "are empty", "Drop these rows"),
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
    "Gemini's parts": ([{"role": "user", "parts": [{"text": "q"}]}], "parts", "content"),
    "an empty message": ([{"role": "user", "content": ""}], "are empty", "Drop these rows"),
    "ShareGPT with an unknown speaker": ([{"from": "narrator", "value": "q"}], "'narrator'", "human"),
}
REFUSED_ASIDE: dict[str, tuple[Any, str, str]] = {
    "an empty list": ([], "are empty", "Drop these rows"),
    "messages as Python's text": ("[{'role': 'user', 'content': 'q'}]", "Python", "ast.literal_eval"),
    "one message as JSON": ('{"role": "user", "content": "q"}', "JSON", "json.loads"),
    "ShareGPT as JSON": ('[{"from": "human", "value": "q"}]', "JSON", "json.loads"),
    "a role in capitals": ([{"role": "User", "content": "q"}], "role 'User'", "user"),
    "a role of the trainer's own": ([SYSTEM, {"role": "narrator", "content": "q"}], "role 'narrator'", "user"),
    "ShareGPT's rows in a mapping": (
        {"conversations": [{"from": "human", "value": "q"}]},
        "conversations",
        "{prompt: question.conversations}",
    ),
    "a question in a mapping": ({"question": "q", "level": 3}, "question", "{prompt: question.question}"),
    "sound": ([{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}], "input_audio", "text"),
    "true": (True, "true or false", "text"),
    "a list of conversations": ([[USER], [USER]], "list of conversations", "row"),
    "text under another key": ([{"role": "user", "text": "q"}], "text", "content"),
    "a message without a role": ([{"content": "q"}], "role", "user"),
    "content that is null": ([{"role": "user", "content": None}], "are empty", "Drop these rows"),
    "a call of a tool": (
        [USER, {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}],
        "tool_calls",
        "text",
    ),
    "a list of numbers": ([1, 2], "list of numbers", "text"),
    "a mapping of neither": ({"level": 3, "id": 4}, "level, id", "columns"),
    "messages as numpy writes them": (
        "[{'content': 'q', 'role': 'system'}\n {'content': 'r', 'role': 'user'}]",
        "Python",
        "ast.literal_eval",
    ),
    "a row of messages as JSON": ('{"prompt": [{"role": "user", "content": "q"}], "id": 3}', "JSON", "json.loads"),
    "a call's result": ([{"role": "function", "name": "f", "content": "3"}], "role 'function'", "tool"),
}
