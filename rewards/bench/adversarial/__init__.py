"""Completions made to break verifiers: to hang them, to exhaust memory, to be paid without an answer.

Kept as JSON beside this file, a list of entries::

    {"name": "braces", "answer": {"join": ["\\\\boxed{", {"repeat": "{", "times": 20}]}, "why": "exponential parsers"}
    {"name": "nothing", "completion": ""}

``completion`` is tried as it is. ``answer`` is tried in every form in which verifiers read answers: bare, after a
thought in an ``<answer>`` block, in a ``\\boxed{}``, and as a fenced program. A text is a string, or::

    {"repeat": TEXT, "times": 100000}
    {"join": [TEXT, …]}
    {"count": 3000, "between": ","}                 0,1,…,2999
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MOST_CHARACTERS = 5_000_000
FORMS = {
    "bare": "{}",
    "answer block": "<think>so</think><answer>{}</answer>",
    "boxed": "<think>so</think>The answer is \\boxed{{{}}}.",
    "program": "<think>so</think>\n```python\n{}\n```\n",
}


class AdversarialError(ValueError):
    """A file that is not a list of adversarial completions; the message says which entry and what to write."""


def built_in(forms: Mapping[str, str] = FORMS, files: str = "*.json") -> dict[str, str]:
    """Name → completion of every entry that ships in ``files``, the ``forms`` of an answer apart."""
    return {
        name: completion
        for file in sorted(Path(__file__).parent.glob(files))
        for name, completion in adversarial_completions(file, forms).items()
    }


def adversarial_completions(file: Path, forms: Mapping[str, str] = FORMS) -> dict[str, str]:
    """Name → completion of every entry of ``file``, its answers in each of ``forms``.

    Raises:
        AdversarialError: the file is no JSON list of entries as above, a name comes twice, or a text would have more
            than 5,000,000 characters.
    """
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AdversarialError(f"{file} cannot be read: {error}. Write a JSON list of completions.") from error
    if not isinstance(entries, list):
        raise AdversarialError(f'{file} holds no list. Write [{{"name": …, "completion": …}}, …].')
    completions: dict[str, str] = {}
    for place, entry in enumerate(entries):
        try:
            named = dict(_named(entry, forms))
        except ValueError as error:
            raise AdversarialError(f"{file}, entry {place} (counted from 0): {error}") from error
        if twice := completions.keys() & named.keys():
            raise AdversarialError(f"{file}, entry {place}: the name {min(twice)!r} is taken. Give it another.")
        completions |= named
    return completions


def written_text(expression: Any) -> str:
    """The text that ``expression`` stands for. Raises ``ValueError`` for other forms, and for texts too long."""
    text = expression if isinstance(expression, str) else _generated(expression)
    if len(text) > MOST_CHARACTERS:
        raise ValueError(
            f"{len(text)} characters, more than the {MOST_CHARACTERS} that are tried; repeat it less often"
        )
    return text


def _named(entry: Any, forms: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not isinstance(entry, Mapping) or ("completion" in entry) == ("answer" in entry) or "name" not in entry:
        raise ValueError(f"{entry!r:.80}; write a name, and either a completion or an answer")
    if "completion" in entry:
        yield entry["name"], written_text(entry["completion"])
        return
    answer = written_text(entry["answer"])
    for form, template in forms.items():
        yield f"{entry['name']} ({form})", template.format(answer)


def _generated(expression: Any) -> str:
    match expression:
        case {"repeat": text, "times": int(times)} if times >= 0:
            unit = written_text(text)
            if len(unit) * times > MOST_CHARACTERS:
                raise ValueError(f"{times} times {len(unit)} characters are more than {MOST_CHARACTERS}")
            return unit * times
        case {"join": list(texts)}:
            return "".join(written_text(text) for text in texts)
        case {"count": int(count), "between": str(between)} if 0 <= count <= MOST_CHARACTERS // 10:
            return between.join(map(str, range(count)))
    raise ValueError(f"{expression!r:.80} is not a text; write a string, a repeat with times, a join, or a count")
