"""Prompts as conversations, lists of ``{role, content}``."""

from typing import Any

from evenkeel.trainer.run.data.prompt_forms import PromptForm, as_messages, form_of
from evenkeel.trainer.run.data.sources import DataError, rows_named

_TEMPLATE_MARKS = ("<|im_start|>", "<|start_header_id|>", "<|begin_of_text|>")


def conversations(
    prompts: list[Any], system_prompt: str | None, label: str, column: str, *, templated: bool = False
) -> list[list[dict[str, Any]]]:
    """A text becomes one user message, as other forms become messages; ``system_prompt`` is put first.

    Args:
        column: of ``label`` in which the prompts stand.
        templated: take prompts that already carry a chat template.

    Raises:
        DataError: prompts of a form that is not a conversation, that already carry a chat template, or have a system
            message of their own.
    """
    made, where = [as_messages(prompt) for prompt in prompts], f"{label}, column {column}"
    _refuse_forms(made, where, column)
    instead = "Name a column of bare questions under `columns: {prompt: …}`, or split the text into messages first."
    what = "already carry a chat template, which would be applied twice"
    if not templated:
        _refuse_rows([_is_templated(messages) for messages in made], where, what, instead)
    if system_prompt is None:
        return made
    instead = "Delete data.system_prompt, or name a column of bare questions."
    what = "have a system message of their own beside data.system_prompt"
    _refuse_rows([messages[0]["role"] == "system" for messages in made], where, what, instead)
    return [[{"role": "system", "content": system_prompt}, *messages] for messages in made]


def _refuse_forms(made: list[Any], where: str, column: str) -> None:
    rows: dict[PromptForm, list[int]] = {}
    for row, prompt in enumerate(made):
        if (form := form_of(prompt)) is not None:
            rows.setdefault(form, []).append(row)
    if rows:
        lines = [
            f"{where}: the prompts of {rows_named(found)} {form.what(made[found[0]])}. "
            f"{form.instead(made[found[0]], column)}"
            for form, found in rows.items()
        ]
        raise DataError("\n\n".join(lines))


def _refuse_rows(wrong: list[bool], where: str, what: str, instead: str) -> None:
    if rows := [row for row, is_wrong in enumerate(wrong) if is_wrong]:
        raise DataError(f"{where}: the prompts of {rows_named(rows)} {what}. {instead}")


def _is_templated(messages: list[dict[str, Any]]) -> bool:
    return any(mark in message["content"] for message in messages for mark in _TEMPLATE_MARKS)
