"""A chat template rendered in a worker process first: it is a program that comes with a model, and may never end."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenkeel.rewards.isolation.workers import WorkerPool

CPU_SECONDS, MEMORY_BYTES = 5.0, 1 << 30
_TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string", "description": "What."}}},
    },
}


def rendering_fault(
    tokenizer: Any,
    conversations: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    *,
    tools: bool = False,
    is_last: bool = False,
) -> str | None:
    """Why the template of ``tokenizer`` is not to be rendered; ``None`` where it ends within limits, if by an error.

    Args:
        options: of the template, beside the special tokens.
        tools: render each conversation with a tool also.
        is_last: end the worker then.
    """
    pool = WorkerPool(
        f"{__name__}:renders",
        json.dumps(tokenizer.chat_template),
        cpu_seconds=CPU_SECONDS,
        wall_seconds=12 * CPU_SECONDS,
        memory_bytes=MEMORY_BYTES,
        workers=1,
    )
    given = {**tokenizer.special_tokens_map, **(options or {})}
    (found,) = pool.map([{"conversations": conversations, "given": given, "tools": [None, [_TOOL]][: 1 + tools]}])
    if is_last:
        pool.close()
    if not found.killed:
        return None
    return (
        f"was ended at a limit ({found.status.replace('_', ' ')}) in a process that may take {CPU_SECONDS:g} s and "
        f"{MEMORY_BYTES >> 30} GiB for {len(conversations)} conversations, so it is not rendered here. Read it, or "
        "take another model."
    )


def renders(argument: str) -> Callable[[Mapping[str, Any]], None]:
    """In the worker: each conversation of an item written by each of the templates."""
    from transformers.utils.chat_template_utils import render_jinja_template

    template = json.loads(argument)
    templates = [*template.values()] if isinstance(template, dict) else [template]

    def rendered(item: Mapping[str, Any]) -> None:
        for conversation in item["conversations"]:
            for template in templates:
                for tools in item["tools"]:
                    for begun in (True, False):
                        try:
                            render_jinja_template(
                                [conversation], tools, None, template, add_generation_prompt=begun, **item["given"]
                            )
                        except MemoryError:
                            raise
                        except Exception:  # noqa: BLE001 — what it raises is said where its text is needed
                            pass

    return rendered
