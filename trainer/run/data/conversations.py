"""Prompts, in the forms of published data sets, as conversations: lists of ``{role, content}``."""

import re
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.data.sources import rows_named

ROLES = ("system", "developer", "user", "assistant", "tool")
"""Who may speak in a prompt, as chat templates know them."""
_SHAREGPT = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", **{role: role for role in ROLES}}
_KEY = re.compile(r"""['"](\w+)['"]\s*:""")
TEMPLATE_MARKS = ("<|im_start|>", "<|start_header_id|>", "<|begin_of_text|>")
"""Texts of a rendered prompt."""


def conversations(
    prompts: list[Any], system_prompt: str | None, label: str, column: str, *, raw: bool = False
) -> list[Any]:
    """A text becomes one user message, as other forms become messages; ``system_prompt`` is put first.

    Args:
        column: name of the prompt column, for messages.
        raw: return texts instead: that of a prompt's only message, unchanged.

    Raises:
        Refusal: prompts of a form that is not a conversation, that already carry a chat template, or have a system
            message of their own; raw ones of several messages.
    """
    made, where = [as_messages(prompt) for prompt in prompts], f"{label}, column {column}"
    refused: dict[str, list[int]] = {}
    for row, prompt in enumerate(made):
        if fault := fault_of_prompt(prompt):
            refused.setdefault(fault, []).append(row)
    if refused:
        faults = "; ".join(f"the prompts of {rows_named(rows)} {fault}" for fault, rows in refused.items())
        raise Refusal(
            f"{where}: {faults}. A prompt is a text, or messages [{{role: user, content: …}}] with the roles "
            f"{', '.join(ROLES)}. Name its column, or a field of it ({column}.field), under `columns: {{prompt: …}}`."
        )
    if raw:
        several = [len(messages) > 1 for messages in made]
        _refuse_rows(several, where, "hold several messages, and raw feeds one text. Render them.")
        return [messages[0]["content"] for messages in made]
    marked = [any(mark in each["content"] for mark in TEMPLATE_MARKS for each in messages) for messages in made]
    instead = "Write model.chat_template: raw to feed them unchanged, or name a column of bare questions."
    _refuse_rows(marked, where, f"already carry a chat template. {instead}")
    if system_prompt is None:
        return made
    own = [messages[0]["role"] == "system" for messages in made]
    _refuse_rows(own, where, "have a system message of their own. Delete data.system_prompt.")
    return [[{"role": "system", "content": system_prompt}, *messages] for messages in made]


def as_messages(prompt: Any) -> Any:
    """A list of ``{role, content}``, made of a text, of one message, of ShareGPT's ``{from, value}`` or of text parts.

    Anything else is returned unchanged, for `fault_of_prompt` to name.
    """
    if isinstance(prompt, str):
        return prompt if not prompt.strip() or _spells_messages(prompt) else [{"role": "user", "content": prompt}]
    messages = [prompt] if isinstance(prompt, dict) and {*prompt} & {"role", "from"} else prompt
    return [*map(_as_message, messages)] if isinstance(messages, list) else messages


def _as_message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    speaker, text = message.get("from"), message.get("value")
    if "role" not in message and isinstance(speaker, str) and speaker in _SHAREGPT and isinstance(text, str):
        return {"role": _SHAREGPT[speaker], "content": text}
    parts = message.get("content")
    parts = parts if isinstance(parts, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    if parts and len(texts) == len(parts) and all(isinstance(text, str) for text in texts):
        return {**message, "content": "".join(part["text"] for part in parts)}
    return message


def _spells_messages(text: str) -> bool:
    """A text spells messages in JSON, Python or as numpy prints them: the policy would read the brackets.

    It is in brackets, and has the keys ``role`` and ``content``, or ShareGPT's ``from`` and ``value``.
    """
    text = text.strip()
    keys = [{*_KEY.findall(text)}] if text.startswith(("[", "{")) and text.endswith(("]", "}")) else []
    return any({"role", "content"} <= found or {"from", "value"} <= found for found in keys)


def fault_of_prompt(prompt: Any) -> str:
    """The predicate of "the prompts of rows 1, 2 …", after `as_messages`; empty if a template can render them."""
    if prompt is None or prompt in ([], {}) or (isinstance(prompt, str) and not prompt.strip()):
        return "are empty"
    if isinstance(prompt, str):
        return "are texts that spell messages (read them with json.loads)"
    if not isinstance(prompt, list):
        keys = f" with the keys {', '.join(map(str, prompt))}" if isinstance(prompt, dict) else ""
        return f"are {type(prompt).__name__}{keys}, neither text nor messages"
    for message in prompt:
        if not isinstance(message, dict):
            return f"hold {type(message).__name__} in the place of a message"
        if (role := message.get("role", message.get("from"))) not in ROLES or "role" not in message:
            return f"hold a message of {role!r} (keys: {', '.join(map(str, message))})"
        content = message.get("content")
        if not isinstance(content, str) or not content.strip():
            return f"hold a message whose content is no text, or empty: {content!r:.80}"
    return ""


def _refuse_rows(wrong: list[bool], where: str, what: str) -> None:
    if rows := [row for row, is_wrong in enumerate(wrong) if is_wrong]:
        raise Refusal(f"{where}: the prompts of {rows_named(rows)} {what}")
