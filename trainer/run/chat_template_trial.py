"""A chat template rendered in a worker process first: it is a program that comes with a model, and may never end."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from evenkeel.rewards.isolation.workers import WorkerPool

POOL = WorkerPool(
    f"{__name__}:render", cpu_seconds=5.0, wall_seconds=60.0, memory_bytes=1 << 30, workers=1, warm_up=(None,)
)
_PARAMETERS = {"type": "object", "properties": {"at": {"type": "string", "description": "What."}}}
_TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": _PARAMETERS}}
_CALL = {"type": "function", "function": {"name": "look", "arguments": {"at": "1"}}}
_TURNS = [
    {"role": "user", "content": "1"},
    {"role": "assistant", "content": "2", "tool_calls": [_CALL]},
    {"role": "tool", "name": "look", "content": "3"},
    {"role": "assistant", "content": "4"},
    {"role": "user", "content": "5"},
]
FORMS = [[*start, *_TURNS[:end]] for start in ([], [{"role": "system", "content": "0"}]) for end in (1, 2, 3, 4, 5)]
"""Conversations in all the forms that this package renders."""


def rendering_fault(
    tokenizer: Any, conversations: Sequence[Any] = FORMS, options: Mapping[str, Any] | None = None
) -> str | None:
    """Why the template of ``tokenizer`` must not be rendered; ``None`` if it ends within limits, even with an error."""
    template = tokenizer.chat_template
    item = {
        "conversations": conversations,
        "templates": [*template.values()] if isinstance(template, dict) else [template],
        "given": {**tokenizer.special_tokens_map, **(options or {})},
        "tools": [None, [_TOOL]] if conversations is FORMS else [None],
    }
    (found,) = POOL.map([item])
    if not found.killed:
        return None
    limits = f"{POOL.cpu_seconds:g} s and {POOL.memory_bytes >> 20} MiB for {len(conversations)} conversations"
    return f"was ended at a limit ({found.status.replace('_', ' ')}; {limits}). Take another."


def render(item: Mapping[str, Any] | None) -> None:
    """In the worker: render each conversation with each template; ``None`` only imports what that needs."""
    from transformers.utils.chat_template_utils import render_jinja_template

    if item is None:
        return
    cases = product(item["conversations"], item["templates"], item["tools"], (True, False))
    for conversation, template, tools, begun in cases:
        try:
            render_jinja_template([conversation], tools, None, template, add_generation_prompt=begun, **item["given"])
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 — what it raises is said where its text is needed
            pass
