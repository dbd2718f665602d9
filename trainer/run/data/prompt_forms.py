"""The forms in which data sets write prompts: those that become messages ``{role, content}``, and those that cannot."""

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenkeel.rewards.registry import closest

ROLES = ("system", "developer", "user", "assistant", "tool")
"""Who may speak in a prompt, as chat templates know them."""
_SHAREGPT = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", **{role: role for role in ROLES}}
_LISTS = ("messages", "conversations", "conversation", "prompt", "turns", "dialogue", "dialog")
_TEXTS = ("question", "problem", "text", "prompt", "query", "instruction", "input", "content", "value", "user")
"""Fields of a mapping in which data sets keep a conversation, or the question."""


@dataclass(frozen=True)
class PromptForm:
    """A form that is refused.

    Attributes:
        fits: whether a prompt, after `as_messages`, is written so; the first form that fits names it.
        what: completes "the prompts of rows 1, 2 …".
        instead: what to write; given a prompt of the form and its column.
    """

    fits: Callable[[Any], bool]
    what: Callable[[Any], str]
    instead: Callable[[Any, str], str]


def as_messages(prompt: Any) -> Any:
    """A list of ``{role, content}``, made of a text, of one message, of ShareGPT's ``{from, value}`` or of text parts.

    What none of these is comes back as it is, for `form_of` to name.
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


def form_of(prompt: Any) -> PromptForm | None:
    """The form for which a prompt is refused; ``None`` of messages that a chat template can write."""
    return next((form for form in FORMS if form.fits(prompt)), None)


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


def _items(prompt: Any, key: str | None = None) -> list[Any]:
    """The items of a list, or what its messages hold under ``key``."""
    items = prompt if isinstance(prompt, list) else []
    return items if key is None else [item[key] for item in items if isinstance(item, dict) and key in item]


def _all_of(kind: type | tuple[type, ...]) -> Callable[[Any], bool]:
    return lambda prompt: bool(_items(prompt)) and all(isinstance(item, kind) for item in prompt)


def _field(prompt: Any) -> str | None:
    """The field of a mapping that holds the conversation or the question."""
    if not isinstance(prompt, dict):
        return None
    lists = (key for key in _LISTS if isinstance(prompt.get(key), list))
    return next(lists, None) or next((key for key in _TEXTS if isinstance(prompt.get(key), str)), None)


def _any(prompt: Any, wrong: Callable[[Any], object]) -> bool:
    return any(map(wrong, _items(prompt)))


def _first(prompt: Any, wrong: Callable[[Any], object]) -> Any:
    """The first message of which ``wrong`` is true, where there is one (`_any`): it may be ``None`` itself."""
    return next(filter(wrong, _items(prompt)))


def _no_role(message: Any) -> bool:
    return not isinstance(message, dict) or not isinstance(message.get("role"), str)


def _unknown_role(message: Any) -> bool:
    return not _no_role(message) and message["role"] not in ROLES


def _calls(message: Any) -> bool:
    return isinstance(message, dict) and bool(message.get("tool_calls")) and not message.get("content")


def _other_parts(message: Any) -> list[str]:
    """The kinds of the parts of a message's content that are not text."""
    parts = message.get("content") if isinstance(message, dict) else None
    parts = [parts] if isinstance(parts, dict) else parts
    kinds = [
        str(part.get("type") or ", ".join(part)) if isinstance(part, dict) else type(part).__name__
        for part in (parts if isinstance(parts, list) else [])
        if not _is_text(part)
    ]
    return kinds or (
        ["text in a mapping"] if isinstance(message, dict) and isinstance(message.get("content"), dict) else []
    )


def _empty(message: Any) -> bool:
    content = message.get("content", 0)
    return content is None or content == [] or (isinstance(content, str) and not content.strip())


def _meant(role: str) -> str:
    known = {"model": "assistant", "bot": "assistant", "ai": "assistant", "function": "tool", **_SHAREGPT}
    near = known.get(role.lower()) or next(iter(closest(role, ROLES)), None)
    return f"Write {near}." if near else f"Write one of {', '.join(ROLES)}: a question is the user's."


def _keys(message: Any) -> str:
    return ", ".join(map(str, message)) or "no keys"


FORMS = (
    PromptForm(
        lambda prompt: prompt is None or prompt in ([], {}) or (isinstance(prompt, str) and not prompt.strip()),
        lambda prompt: "are empty",
        lambda prompt, column: "Drop these rows.",
    ),
    PromptForm(
        lambda prompt: isinstance(prompt, str),
        lambda prompt: f"are texts that spell messages in {_spelled_messages(prompt)}",
        lambda prompt, column: (
            "The policy would be asked the brackets too. Write the messages themselves, read by "
            f"{'json.loads' if _spelled_messages(prompt) == 'JSON' else 'ast.literal_eval'}, as .jsonl or .parquet."
        ),
    ),
    PromptForm(
        lambda prompt: isinstance(prompt, bool),
        lambda prompt: "are true or false, no questions",
        lambda prompt, column: "Name a column of text or messages: `columns: {prompt: …}`.",
    ),
    PromptForm(
        lambda prompt: isinstance(prompt, int | float),
        lambda prompt: "are numbers, no questions",
        lambda prompt, column: f"Write them into a text: `columns: {{prompt: 'What is … {{{column}}}?'}}`.",
    ),
    PromptForm(
        lambda prompt: _field(prompt) is not None,
        lambda prompt: f"are mappings of {_keys(prompt)}, and no messages",
        lambda prompt, column: f"Step into them: `columns: {{prompt: {column}.{_field(prompt)}}}`.",
    ),
    PromptForm(
        lambda prompt: isinstance(prompt, dict),
        lambda prompt: f"are mappings of {_keys(prompt)}, none of which is a text to ask or a list of messages",
        lambda prompt, column: "Name another column, or put several into a text: `columns: {prompt: '… {column} …'}`.",
    ),
    PromptForm(
        lambda prompt: not isinstance(prompt, list),
        lambda prompt: f"are of type {type(prompt).__name__}, neither text nor messages",
        lambda prompt, column: "Write text, or messages: [{role: user, content: …}].",
    ),
    PromptForm(
        _all_of(str),
        lambda prompt: "are a list of texts, and nobody says who speaks",
        lambda prompt, column: "Write [{role: user, content: …}]; of one text the text alone.",
    ),
    PromptForm(
        _all_of((int, float)),
        lambda prompt: "are a list of numbers, no questions",
        lambda prompt, column: f"Write them into a text: `columns: {{prompt: 'Use the numbers {{{column}}} …'}}`.",
    ),
    PromptForm(
        _all_of(list),
        lambda prompt: "are a list of conversations, and a prompt is one",
        lambda prompt, column: "Give each conversation a row of its own.",
    ),
    PromptForm(
        lambda prompt: _any(prompt, lambda message: isinstance(message, dict) and {"from", "value"} <= {*message}),
        lambda prompt: (
            f"are ShareGPT's {{from, value}} with the speaker {_items(prompt, 'from')[0]!r}"
            if len({*map(str, _items(prompt, "from"))}) == 1
            else f"are ShareGPT's {{from, value}} with the speakers {', '.join(map(repr, _items(prompt, 'from')))}"
        ),
        lambda prompt, column: f"Write one of {', '.join(_SHAREGPT)}, and a text as its value.",
    ),
    PromptForm(
        lambda prompt: _any(prompt, _no_role),
        lambda prompt: (
            f"hold a message without a role (keys: {_keys(_first(prompt, _no_role))})"
            if isinstance(_first(prompt, _no_role), dict)
            else f"hold {type(_first(prompt, _no_role)).__name__} in the place of a message"
        ),
        lambda prompt, column: "Write {role: user, content: …}.",
    ),
    PromptForm(
        lambda prompt: _any(prompt, _unknown_role),
        lambda prompt: (
            f"hold a message of role {_first(prompt, _unknown_role)['role']!r}, which no chat template knows"
        ),
        lambda prompt, column: _meant(_first(prompt, _unknown_role)["role"]),
    ),
    PromptForm(
        lambda prompt: _any(prompt, _calls),
        lambda prompt: "hold a message with tool_calls and no content",
        lambda prompt, column: (
            "Calls of tools are not trained here: write the call as text into content, or drop these rows."
        ),
    ),
    PromptForm(
        lambda prompt: _any(prompt, _empty),
        lambda prompt: "are empty: a message has no content",
        lambda prompt, column: "Drop these rows.",
    ),
    PromptForm(
        lambda prompt: _any(prompt, lambda message: "content" not in message),
        lambda prompt: (
            f"hold a message without content (keys: {_keys(_first(prompt, lambda message: 'content' not in message))})"
        ),
        lambda prompt, column: "Write its text under the key content: {role: user, content: …}.",
    ),
    PromptForm(
        lambda prompt: _any(prompt, _other_parts),
        lambda prompt: f"hold parts that are not text: {', '.join(_other_parts(_first(prompt, _other_parts)))}",
        lambda prompt, column: "Policies here read text alone: write content as a text, or drop these rows.",
    ),
    PromptForm(
        lambda prompt: any(not isinstance(content, str) for content in _items(prompt, "content")),
        lambda prompt: "hold a message whose content is not text",
        lambda prompt, column: "Write content as a text.",
    ),
)
"""Looked through in this order."""
