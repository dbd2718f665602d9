"""The forms in which data sets write prompts: those that become messages ``{role, content}``, and those that cannot."""

import ast
import json
import re
from typing import Any

from evenkeel.rewards.registry import closest

ROLES = ("system", "developer", "user", "assistant", "tool")
"""Who may speak in a prompt, as chat templates know them."""
_SHAREGPT = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", **{role: role for role in ROLES}}
_LISTS = ("messages", "conversations", "conversation", "prompt", "turns", "dialogue", "dialog")
_TEXTS = ("question", "problem", "text", "prompt", "query", "instruction", "input", "content", "value", "user")
"""Fields of a mapping in which data sets keep a conversation, or the question."""


def as_messages(prompt: Any) -> Any:
    """A list of ``{role, content}``, made of a text, of one message, of ShareGPT's ``{from, value}`` or of text parts.

    What none of these is comes back as it is, for `refused_form` to name.
    """
    if isinstance(prompt, str):
        return prompt if not prompt.strip() or _spelled_messages(prompt) else [{"role": "user", "content": prompt}]
    messages = [prompt] if isinstance(prompt, dict) and {*prompt} & {"role", "from"} else prompt
    return [*map(_as_message, messages)] if isinstance(messages, list) else messages


def _as_message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    speaker, text = message.get("from"), message.get("value")
    if "role" not in message and isinstance(speaker, str) and speaker in _SHAREGPT and isinstance(text, str):
        return {"role": _SHAREGPT[speaker], "content": text}
    parts = message.get("content")
    if isinstance(parts, list) and parts and all(_is_text(part) for part in parts):
        return {**message, "content": "".join(part["text"] for part in parts)}
    return message


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _spelled_messages(text: str) -> str | None:
    """``JSON`` or ``Python`` where a text spells messages in that language."""
    text = text.strip()
    if not (text.startswith(("[", "{")) and text.endswith(("]", "}"))):
        return None
    for language, read in (("JSON", json.loads), ("Python", ast.literal_eval)):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        values = value.values() if isinstance(value, dict) else ()
        return language if any(map(_are_messages, (value, [value], *values))) else None
    # as numpy writes an array of messages, without commas, which no language reads
    return "Python" if all(re.search(rf"['\"]{key}['\"]\s*:", text) for key in ("role", "content")) else None


def _are_messages(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and ({"role", "content"} <= {*first} or {"from", "value"} <= {*first})


def _field(prompt: dict[str, Any]) -> str | None:
    """The field of a mapping that holds the conversation or the question."""
    lists = (key for key in _LISTS if isinstance(prompt.get(key), list))
    return next(lists, None) or next((key for key in _TEXTS if isinstance(prompt.get(key), str)), None)


def _other_parts(content: Any) -> list[str]:
    """The kinds of the parts of a message's content that are not text."""
    parts = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    kinds = [
        str(part.get("type") or ", ".join(part)) if isinstance(part, dict) else type(part).__name__
        for part in parts
        if not _is_text(part)
    ]
    return kinds or (["text in a mapping"] if isinstance(content, dict) else [])


def _keys(message: Any) -> str:
    return ", ".join(map(str, message)) or "no keys"


def refused_form(prompt: Any, column: str) -> tuple[str, str, str] | None:
    """The form for which a prompt, after `as_messages`, is refused; ``None`` of messages that a template can write.

    Returns:
        A name of the form, what completes "the prompts of rows 1, 2 …", and what to write instead.
    """
    if prompt is None or prompt in ([], {}) or (isinstance(prompt, str) and not prompt.strip()):
        return "nothing", "are empty", "Drop these rows."
    if isinstance(prompt, str):
        language = _spelled_messages(prompt)
        reader = "json.loads" if language == "JSON" else "ast.literal_eval"
        instead = "The policy would be asked the brackets too. Write the messages themselves, read by "
        what = f"are texts that spell messages in {language}"
        return "spelled messages", what, f"{instead}{reader}, as .jsonl or .parquet."
    if isinstance(prompt, bool):
        instead = "Name a column of text or messages: `columns: {prompt: …}`."
        return "boolean", "are true or false, no questions", instead
    if isinstance(prompt, int | float):
        instead = f"Write them into a text: `columns: {{prompt: 'What is … {{{column}}}?'}}`."
        return "number", "are numbers, no questions", instead
    if isinstance(prompt, dict) and (field := _field(prompt)) is not None:
        what = f"are mappings of {_keys(prompt)}, and no messages"
        return "mapping of messages", what, f"Step into them: `columns: {{prompt: {column}.{field}}}`."
    if isinstance(prompt, dict):
        what = f"are mappings of {_keys(prompt)}, none of which is a text to ask or a list of messages"
        instead = "Name another column, or put several into a text: `columns: {prompt: '… {column} …'}`."
        return "mapping", what, instead
    if not isinstance(prompt, list):
        what = f"are of type {type(prompt).__name__}, neither text nor messages"
        return "other type", what, "Write text, or messages: [{role: user, content: …}]."
    return _refused_list(prompt, column)


def _refused_list(prompt: list[Any], column: str) -> tuple[str, str, str] | None:
    if all(isinstance(item, str) for item in prompt):
        what = "are a list of texts, and nobody says who speaks"
        return "texts", what, "Write [{role: user, content: …}]; of one text the text alone."
    if all(isinstance(item, int | float) for item in prompt):
        instead = f"Write them into a text: `columns: {{prompt: 'Use the numbers {{{column}}} …'}}`."
        return "numbers", "are a list of numbers, no questions", instead
    if all(isinstance(item, list) for item in prompt):
        what = "are a list of conversations, and a prompt is one"
        return "conversations", what, "Give each conversation a row of its own."
    mappings = [item for item in prompt if isinstance(item, dict)]
    if any({"from", "value"} <= {*message} for message in mappings):
        speakers = [message["from"] for message in mappings if "from" in message]
        one = len({*map(str, speakers)}) == 1
        who = f"speaker {speakers[0]!r}" if one else f"speakers {', '.join(map(repr, speakers))}"
        instead = f"Write one of {', '.join(_SHAREGPT)}, and a text as its value."
        return "ShareGPT", f"are ShareGPT's {{from, value}} with the {who}", instead
    for message in prompt:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            what = f"hold {type(message).__name__} in the place of a message"
            if isinstance(message, dict):
                what = f"hold a message without a role (keys: {_keys(message)})"
            return "no role", what, "Write {role: user, content: …}."
    for role in (message["role"] for message in prompt):
        if role not in ROLES:
            known = {"model": "assistant", "bot": "assistant", "ai": "assistant", "function": "tool", **_SHAREGPT}
            near = known.get(role.lower()) or next(iter(closest(role, ROLES)), None)
            instead = f"Write {near}." if near else f"Write one of {', '.join(ROLES)}: a question is the user's."
            return "unknown role", f"hold a message of role {role!r}, which no chat template knows", instead
    if any(message.get("tool_calls") and not message.get("content") for message in prompt):
        instead = "Calls of tools are not trained here: write the call as text into content, or drop these rows."
        return "tool calls", "hold a message with tool_calls and no content", instead
    contents = [message["content"] for message in prompt if "content" in message]
    if any(each is None or each == [] or (isinstance(each, str) and not each.strip()) for each in contents):
        return "empty message", "are empty: a message has no content", "Drop these rows."
    for message in prompt:
        if "content" not in message:
            what = f"hold a message without content (keys: {_keys(message)})"
            return "no content", what, "Write its text under the key content: {role: user, content: …}."
    if other := next(filter(None, map(_other_parts, contents)), None):
        instead = "Policies here read text alone: write content as a text, or drop these rows."
        return "other parts", f"hold parts that are not text: {', '.join(other)}", instead
    if not all(isinstance(content, str) for content in contents):
        return "content of another type", "hold a message whose content is not text", "Write content as a text."
    return None
