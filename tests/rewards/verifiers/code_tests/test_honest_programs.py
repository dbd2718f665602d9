"""Honest programs whatever they are made of, and what each could let through: `honest_programs.json`.

`learned` was looked at while fixing, `aside` after it, and `opened` holds what the fixes themselves might have opened.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from evenkeel.rewards.verifier import Verdict
from evenkeel.rewards.verifiers.code_tests.verifier import CodeTests

PROGRAMS: list[dict[str, Any]] = [
    row
    for half in json.loads(Path(__file__).with_name("honest_programs.json").read_text("utf-8")).values()
    for row in half
]


def reference(program: dict[str, Any]) -> Any:
    text, kind = "\n".join(program["tests"]), program["kind"]
    if kind in ("function", "stdin"):
        pairs = json.loads(text)
        if kind == "stdin":
            return [{"input": given, "output": expected} for given, expected in pairs]
        return {"inputs": [pair[0] for pair in pairs], "outputs": [pair[1] for pair in pairs], "fn_name": "f"}
    return {"asserts": [text], "pytest": {"test_code": text}, "check": {"test": text, "entry_point": "f"}}[kind]


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    completions = ["```python\n" + "\n".join(program["answer"]) + "\n```" for program in PROGRAMS]
    scored = CodeTests().judge_all(completions, [reference(program) for program in PROGRAMS])
    return {program["name"]: verdict for program, verdict in zip(PROGRAMS, scored, strict=True)}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program["name"])
def test_a_program_earns_what_it_does(verdicts: dict[str, Verdict], program: dict[str, Any]) -> None:
    verdict = verdicts[program["name"]]
    assert verdict.score == program["score"], verdict.reason
