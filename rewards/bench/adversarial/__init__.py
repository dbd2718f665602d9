"""Completions made to break verifiers: to hang them, to exhaust memory, to be paid without an answer.

Kept as JSON in this folder, a list of entries::

    {"name": "braces", "answer": {"join": ["\\\\boxed{", {"repeat": "{", "times": 20}]}, "why": "exponential parsers"}
    {"name": "nothing", "completion": ""}

``completion`` is used unchanged. ``answer`` is used in every form in which verifiers read answers: bare, after a
thought in an ``<answer>`` block, in a ``\\boxed{}``, and as a fenced program. A text is a string, or::

    {"repeat": TEXT, "times": 100000}
    {"join": [TEXT, …]}
    {"count": 3000, "between": ","}                 0,1,…,2999
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMS = {
    "bare": "{}",
    "answer block": "<think>so</think><answer>{}</answer>",
    "boxed": "<think>so</think>The answer is \\boxed{{{}}}.",
    "program": "<think>so</think>\n```python\n{}\n```\n",
}


def built_in(forms: Mapping[str, str] = FORMS, files: str = "*.json") -> dict[str, str]:
    """Name → completion of every entry that ships in ``files``, its answers in each of ``forms``."""
    completions: dict[str, str] = {}
    for file in sorted(Path(__file__).parent.glob(files)):
        for entry in json.loads(file.read_text(encoding="utf-8")):
            if "completion" in entry:
                completions[entry["name"]] = _text(entry["completion"])
                continue
            answer = _text(entry["answer"])
            for form, template in forms.items():
                completions[f"{entry['name']} ({form})"] = template.format(answer)
    return completions


def _text(expression: Any) -> str:
    match expression:
        case {"repeat": text, "times": times}:
            return _text(text) * int(times)
        case {"join": texts}:
            return "".join(map(_text, texts))
        case {"count": count, "between": between}:
            return str(between).join(map(str, range(count)))
    return str(expression)
