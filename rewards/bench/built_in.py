"""A few rows for each built-in verifier, so that all of them can be tested without data."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenkeel.rewards.generators import rows as generated
from evenkeel.rewards.verifier import Verifier


@dataclass(frozen=True)
class Row:
    """A question and the reference of its answers."""

    question: str
    reference: Any


def _generated(generator: Callable[..., list[dict[str, Any]]], **options: Any) -> Callable[[], list[Row]]:
    sized = {"part": "test", "train": 0, "test": 8, "seed": 0, **options}
    return lambda: [Row(row["prompt"], row["reference"]) for row in generator(**sized)]


def _written(*pairs: tuple[str, Any]) -> Callable[[], list[Row]]:
    return lambda: [Row(question, reference) for question, reference in pairs]


def _entry(task: str, question: str, answer: str, **metadata: Any) -> dict[str, str]:
    return {"task": task, "entry": json.dumps({"question": question, "answer": answer, "metadata": metadata})}


RUNNING_TOTAL = [([1, 2, 3], [1, 3, 6]), ([5], [5]), ([2, -1], [2, 1]), ([4, 0, -4, 9], [4, 4, 0, 9])]
"""Values and their totals: the task that the programs of ``code_exploits.json`` claim to solve."""

_CAPITALS = _written(("What is the capital of France?", "Paris"), ("And of Italy?", "Rome"), ("Of Peru?", "Lima"))
_CITIES = ["Rome", "Paris", "Lima", "a village"]

BUILT_IN: dict[str, Callable[[], list[Row]]] = {
    "knights_knaves": _generated(generated.knights_knaves, num_people=3),
    "countdown": _generated(generated.countdown),
    "exact_match": _CAPITALS,
    "multiple_choice": _written(
        ("What is the capital of France?\nA. Rome\nB. Paris", {"answer": "B", "choices": _CITIES}),
        ("What is the capital of Peru?\nA. Rome\nC. Lima", {"answer": 2, "choices": _CITIES}),
        ("What is no capital?\nA. Rome\nD. a village", "D"),
    ),
    "math_answer": _written(
        ("What is $99^2+99+1$?", "9901"),
        ("Simplify $\\sqrt{117}$.", "3\\sqrt{13}"),
        ("Convert $(0,3)$ to polar coordinates.", "\\left( 3, \\frac{\\pi}{2} \\right)"),
        ("Solve $x^2 < 4$.", "(-2,2)"),
        ("What is half of $\\frac{1}{2}$?", 0.25),
    ),
    "code_tests": _written(
        (
            "The running totals of a list, by running_total(values).",
            {
                "inputs": [[values] for values, _ in RUNNING_TOTAL],
                "outputs": [totals for _, totals in RUNNING_TOTAL],
                "fn_name": "running_total",
                "solution": "from itertools import accumulate\n\n\n"
                "def running_total(values):\n    return list(accumulate(values))",
            },
        ),
        (
            "Read n and n numbers, and print their running totals.",
            {
                "inputs": [f"{len(values)}\n{' '.join(map(str, values))}\n" for values, _ in RUNNING_TOTAL],
                "outputs": ["\n".join(map(str, totals)) + "\n" for _, totals in RUNNING_TOTAL],
                "solution": "input()\ntotal = 0\nfor value in map(int, input().split()):\n"
                "    total += value\n    print(total)",
            },
        ),
    ),
    "reasoning_gym": _written(
        ("1 + 2 + 9?", _entry("chain_sum", "?", "12")),
        ("Make 34 of 1, 5, 7.", _entry("countdown", "?", "-1 + 5*7", numbers=[1, 5, 7], target=34)),
        ("Integrate 2*X.", _entry("simple_integration", "?", "X**2 + C", integrand="2*X", variable="X")),
    ),
    **dict.fromkeys(("format", "soft_overlong", "cosine_length", "repetition_penalty"), _CAPITALS),
}
"""Verifier → a function that makes its rows."""
SPECS: dict[str, Any] = {
    "reasoning_gym": {"name": "reasoning_gym", "cpu_seconds": 2.0},
    "soft_overlong": {"name": "soft_overlong", "max_tokens": 100, "buffer_tokens": 20},
    "cosine_length": {"name": "cosine_length", "verifier": "exact_match", "max_tokens": 100},
}
"""Verifiers that need options, or are tested with others than their own."""


def built_in_rows(name: str) -> tuple[Verifier, list[Row]]:
    """The verifier of that name and rows for it. Raises `PartError` where a package is missing."""
    from evenkeel.rewards.parts import build_verifier

    return build_verifier(SPECS.get(name, name)), BUILT_IN[name]()
