"""Prompts as conversations, lists of ``{role, content}``."""

from collections.abc import Callable
from typing import Any

from trainer.run.data.wording import DataError, rows_named

_TEMPLATE_MARKS = ("<|im_start|>", "<|start_header_id|>", "<|begin_of_text|>")


def conversations(
    prompts: list[Any], system_prompt: str | None, label: str, *, templated: bool = False
) -> list[list[dict[str, Any]]]:
    """A text becomes one user message; messages stay as they are; ``system_prompt`` is put first.

    Args:
        templated: take prompts that already carry a chat template.

    Raises:
        DataError: prompts that are empty, already carry a chat template, or have a system message of their own.
    """
    _refuse_rows(prompts, lambda prompt: not _has_text(prompt), label, "are empty or no prompts", "Drop these rows.")
    instead = "Name a column of bare questions under `columns: {prompt: …}`, or split the text into messages first."
    what = "already carry a chat template, which would be applied twice"
    if not templated:
        _refuse_rows(prompts, _is_templated, label, what, instead)
    if system_prompt is not None:
        instead = "Delete data.system_prompt, or name a column of bare questions."
        what = "have a system message of their own beside data.system_prompt"
        _refuse_rows(prompts, lambda prompt: _messages(prompt)[0]["role"] == "system", label, what, instead)
    first = [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
    return [first + _messages(prompt) for prompt in prompts]


def _refuse_rows(prompts: list[Any], wrong: Callable[[Any], bool], label: str, what: str, instead: str) -> None:
    if rows := [index for index, prompt in enumerate(prompts) if wrong(prompt)]:
        raise DataError(f"{label}: the prompts of {rows_named(rows)} {what}. {instead}")


def _messages(prompt: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt


def _has_text(prompt: Any) -> bool:
    messages = _messages(prompt)
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages)
        and all(isinstance(message.get("content"), str) and message["content"].strip() for message in messages)
    )


def _is_templated(prompt: Any) -> bool:
    return any(mark in message["content"] for message in _messages(prompt) for mark in _TEMPLATE_MARKS)
