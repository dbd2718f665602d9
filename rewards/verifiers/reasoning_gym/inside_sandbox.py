"""The program that scores one answer in the sandbox: standard library and reasoning_gym only.

Reads ``{"nonce", "task", "config", "entry", "answer"}`` as JSON from standard input. Writes a last line
``<nonce> {"score": …}`` or, if the reference is at fault, ``<nonce> {"problem": …}``. The nonce marks it among the
output of a scorer; it is not secret from code that runs here, so answers that could be code are never sent.
"""

import json
import sys
from typing import Any


def restored(value: Any) -> Any:
    """The inverse of ``entries.as_text``, after JSON."""
    if isinstance(value, list):
        return [restored(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        if "__tuple__" in value:
            return tuple(restored(item) for item in value["__tuple__"])
        if "__set__" in value:
            return {restored(item) for item in value["__set__"]}
        if "__pairs__" in value:
            return {restored(key): restored(item) for key, item in value["__pairs__"]}
    return {key: restored(item) for key, item in value.items()}


def scored(task: str, config: str, entry: str, answer: str) -> dict[str, Any]:
    """The scorer's value for ``answer``; 0 if it raises, as it does on answers of an unknown form."""
    import reasoning_gym

    try:
        read = restored(json.loads(entry))
        dataset = reasoning_gym.create_dataset(task, **restored(json.loads(config)))
        dataset.score_answer(None, read)
    except Exception as error:  # noqa: BLE001 — any failure without an answer is the reference's
        return {"problem": f"{type(error).__name__}: {error}"}
    try:
        return {"score": float(dataset.score_answer(answer, read))}
    except Exception as error:  # noqa: BLE001 — the boundary of a sandboxed process
        return {"score": 0.0, "why": f"the scorer raised {type(error).__name__}"}


if __name__ == "__main__":
    request = json.loads(sys.stdin.buffer.read())
    nonce = request.pop("nonce")
    sys.stdout.write(f"\n{nonce} {json.dumps(scored(**request))}\n")
