"""Calls of tools and their answers as a chat template and a tokenizer write them."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from transformers.utils import get_json_schema
from trl.chat_template_utils import (
    add_response_schema,
    get_training_chat_template,
    is_chat_template_prefix_preserving,
    supports_tool_calling,
)

from evenkeel.rewards.verifier import readable

_INSTEAD = "Take a model whose template TRL knows (its chat_templates/README.md lists them), or save the tokenizer with"


def tool_template_problem(tokenizer: Any, tools: Sequence[Callable[..., Any]]) -> tuple[str, str] | None:
    """Why a policy cannot call ``tools`` with this tokenizer: code and words; ``None`` where it can.

    Each tool must be describable, the template must write calls and results, something must read calls from what the
    policy writes, and earlier messages must stay as they are once a tool has answered. TRL mends the last two for the
    templates that it knows.
    """
    for tool in tools:
        try:
            get_json_schema(tool)
        except Exception as error:  # noqa: BLE001 — transformers raises several at a signature
            return "tool-without-schema", (
                f"Tool {tool.__name__} cannot be described to the policy: {_first_line(error)} Write types for its "
                "parameters, and a docstring with a sentence and a section Args: that says what each is."
            )
    if not tools:
        return None
    if not supports_tool_calling(tokenizer):
        return "template-without-tools", (
            "The chat template leaves out calls of tools or their results, so a policy could not see what it did. Take "
            "a model whose template writes them (Qwen2.5, Qwen3, Llama 3.1), or save the tokenizer with one."
        )
    if getattr(tokenizer, "response_template", None) is None and getattr(tokenizer, "response_schema", None) is None:
        try:
            add_response_schema(deepcopy(tokenizer))
        except ValueError as error:
            return "template-without-parser", (
                f"Nothing says how calls of tools are read from what a policy writes: {_first_line(error)} {_INSTEAD} "
                "a response_template of its own."
            )
    if not is_chat_template_prefix_preserving(tokenizer):
        try:
            get_training_chat_template(tokenizer)
        except ValueError as error:
            return "template-rewrites", (
                "The chat template writes earlier messages otherwise once a tool has answered, so that other tokens "
                f"would be trained than were sampled: {_first_line(error)} {_INSTEAD} one that leaves them alone."
            )
    return None


def _first_line(error: Exception) -> str:
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return text if text.endswith(".") else f"{text}."


def fitted(answer: Any, tokenizer: Any, limit: int) -> Any:
    """A tool's answer as a tokenizer takes it; of one of more than ``limit`` tokens a beginning that has more, too.

    TRL ends a row at an answer that its completion cannot hold, but tokenizes the whole of it first.
    """
    if isinstance(answer, list):
        return [fitted(part, tokenizer, limit) for part in answer]
    if isinstance(answer, dict):
        return {**answer, "text": fitted(answer["text"], tokenizer, limit)} if "text" in answer else answer
    if not isinstance(answer, str):
        return answer
    text, length = readable(answer), 8 * limit
    text = text[max(len(text) - len(text.lstrip()) - length, 0) :]  # a template may strip what is around it
    text = text[: len(text.rstrip()) + length]
    while length < len(text):
        if len(tokenizer(text[:length].strip(), add_special_tokens=False)["input_ids"]) > limit:
            return text[:length]
        length *= 2
    return text
