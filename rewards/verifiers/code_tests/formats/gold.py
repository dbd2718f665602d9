"""The reference solution in a row."""

import textwrap
from collections.abc import Mapping
from typing import Any

from evenkeel.rewards.verifiers.code_tests.formats.packed import sequence, text_of, unpacked
from evenkeel.rewards.verifiers.code_tests.kinds import UnusableTestsError

_PYTHON_3 = 3  # CodeContests' number for the language
_FIELDS = ("solutions", "canonical_solution", "code", "solution", "completion", "gold_standard_solution")


def gold_program(row: Any) -> str | None:
    """The first reference solution of a row; ``None`` if it has none that fits into a fenced block.

    ``canonical_solution`` continues ``prompt``, as in HumanEval. If the row marks languages, the solution is in
    Python 3.
    """
    if not isinstance(row, Mapping):
        return None
    for field in _FIELDS:
        program = _first(row.get(field), field)
        if program is not None and field == "canonical_solution" and program[:1].isspace():
            program = text_of(row, "prompt") + program
        if program is not None and program.strip():
            return None if "```" in program else textwrap.dedent(program).strip("\n")
    return None


def _first(value: Any, field: str) -> str | None:
    if field == "solutions" and isinstance(value, str):
        try:
            value = unpacked(value, field)
        except UnusableTestsError:
            return None
    # CodeContests: {"language": [1, 3], "solution": ["…", "…"]}.
    if isinstance(value, Mapping):
        languages, programs = sequence(value.get("language")) or [], sequence(value.get("solution")) or []
        value = [program for language, program in zip(languages, programs, strict=False) if language == _PYTHON_3]
    if (listed := sequence(value)) is not None:
        value = next((program for program in listed if isinstance(program, str)), None)
    return value if isinstance(value, str) and value.strip() else None
