"""Prompts as conversations, lists of ``{role, content}``."""

from typing import Any

from evenkeel.trainer.run.data.prompt_forms import as_messages, refused_form
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
    refused: dict[str, tuple[list[int], str, str]] = {}
    for row, prompt in enumerate(made):
        if found := refused_form(prompt, column):
            form, what, instead = found
            refused.setdefault(form, ([], what, instead))[0].append(row)
    if refused:
        lines = [f"{where}: the prompts of {rows_named(rows)} {what}. {do}" for rows, what, do in refused.values()]
        raise DataError("\n\n".join(lines))
    instead = "Name a column of bare questions under `columns: {prompt: …}`, or split the text into messages first."
    what = "already carry a chat template, which would be applied twice"
    if not templated:
        marked = [any(mark in each["content"] for mark in _TEMPLATE_MARKS for each in messages) for messages in made]
        _refuse_rows(marked, where, what, instead)
    if system_prompt is None:
        return made
    instead = "Delete data.system_prompt, or name a column of bare questions."
    what = "have a system message of their own beside data.system_prompt"
    _refuse_rows([messages[0]["role"] == "system" for messages in made], where, what, instead)
    return [[{"role": "system", "content": system_prompt}, *messages] for messages in made]


def _refuse_rows(wrong: list[bool], where: str, what: str, instead: str) -> None:
    if rows := [row for row, is_wrong in enumerate(wrong) if is_wrong]:
        raise DataError(f"{where}: the prompts of {rows_named(rows)} {what}. {instead}")
