"""The result of a check, as text and as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from evenkeel.errors import counted
from evenkeel.trainer.run.check.check import Checked
from evenkeel.trainer.run.check.machine import in_gib
from evenkeel.trainer.run.check.plan import plan_lines


def text_report(checked: Checked, path: str) -> str:
    """The plan, the memory, the problems, and a last line that counts them."""
    lines = [] if checked.plan is None else [*plan_lines(checked.plan)]
    for part, longest in checked.prompt_tokens.items():
        lines.append(f"Prompts of data.{part}: at most {longest:,} tokens.")
    for way, estimate in checked.memory.items():
        largest_first = sorted(estimate.terms, key=lambda term: -term.bytes)
        terms = ", ".join(f"{term.name} {in_gib(term.bytes)}" for term in largest_first)
        lines.append(f"Memory, an estimate ({way}): {in_gib(estimate.peak)}: {terms}.")
    found = [f"{each.severity}: {each}" for each in checked.problems]
    lines += ["", *found] if found else []
    return "\n".join([*lines, "", f"{path}: {counted([problem.severity for problem in checked.problems])}."])


def json_report(checked: Checked, path: str) -> str:
    """The same as one JSON object; its schema is in `evenkeel check`."""
    memory = {
        way: {"peak_bytes": estimate.peak, "terms": [asdict(term) for term in estimate.terms]}
        for way, estimate in checked.memory.items()
    }
    problems = [
        {"severity": each.severity, "key": each.key, "code": each.code, "text": str(each)} for each in checked.problems
    ]
    record = {
        "config": path,
        "ok": not checked.errors,
        "problems": problems,
        "plan": None if checked.plan is None else asdict(checked.plan),
        "prompt_tokens": checked.prompt_tokens,
        "memory_estimate": memory,
    }
    return json.dumps(record, indent=2, ensure_ascii=False)


def brief_lines(checked: Checked) -> Iterator[str]:
    """The plan, and every warning."""
    if checked.plan is not None:
        yield from plan_lines(checked.plan)
    yield from (f"warning: {each}" for each in checked.problems if each.severity == "warning")
