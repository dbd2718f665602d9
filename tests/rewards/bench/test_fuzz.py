"""Generated completions at every verifier: no exception, no verdict withheld, nothing paid but the right answer.

Written over `VERIFIERS`: a new verifier without a case here fails the first test. A case says how a paid completion is
known to hold the right answer, by means of its own.
"""

import importlib.util
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evenkeel.rewards import build_verifier
from evenkeel.rewards.bench.built_in import BUILT_IN
from evenkeel.rewards.extraction import without_ending
from evenkeel.rewards.parts import VERIFIERS
from evenkeel.rewards.verifier import Verifier

BATCH = 25  # completions an example, scored together
EXAMPLES = 6  # 150 completions for each verifier

_TAGS = ["<think>", "</think>", "<answer>", "</answer>", "<Answer>", "<|im_end|>", "</s>", "```python\n", "\n```\n"]
_BOXES = ["\\boxed{", "}", "{", "\\text{", "$", "\\", "\\frac", "\\left(", "\\sqrt{"]
_WORDS = ["The answer is ", "not ", " or ", " and ", "None", "nan", "inf", "True", "is a ", "if ", "return ", "print("]
_SIGNS = [*"0123456789+-*/=()[].,:;'\"_^%!?@#&|~", "**", "//", "==", " ", "\n", "\t", "A", "B", "x", "e"]
_CHARACTERS = ["\x00", "\x1b", "\u200b", "\u202e", "\ud800", "\u2212", "\u00d7", "\u00f7", "\u0130", "\u00b2", "\u0664"]
FRAGMENTS = st.sampled_from(_TAGS + _BOXES + _WORDS + _SIGNS + _CHARACTERS)


@dataclass(frozen=True)
class Case:
    """How one verifier is fuzzed.

    ``pieces`` are fragments of right and nearly right answers; ``holds_answer`` says by other means than the verifier
    whether a completion that was paid holds the right answer.
    """

    pieces: list[str]
    reference: Any
    holds_answer: Callable[[str], bool]
    spec: Any = None


def _last(completion: str, *marks: str) -> str:
    """What stands behind the last of ``marks``, tags and blanks taken away."""
    for mark in marks:
        completion = completion.rpartition(mark)[2]
    return "".join(without_ending(completion).removesuffix("</answer>").split())


def _is_sum_of_seven(completion: str) -> bool:
    text = _last(completion, "</think>", "<answer>").replace("\\left", "").replace("$", "").removesuffix(".")
    text = text.removesuffix("=7").translate(str.maketrans("\u2212\u00d7\u00f7[]", "-*/()"))
    literals = sorted(int(digits) for digits in "".join(c if c.isdigit() else " " for c in text).split())
    return literals in ([3, 4], [1, 3, 4]) and eval(text) == 7 if set(text) <= set("0123456789+-*/()") else False


def _says_both(completion: str) -> bool:
    text = _last(completion, "</think>", "<answer>").lower().replace("*", "").replace("`", "").replace("__", "")
    return text.count("knight") == text.count("knave") == 1 and not {"not", "if", "or"} & set(completion.split()[-6:])


def _is_twelve(completion: str) -> bool:
    """In any notation of the number: the library's scorer takes ``+12`` and ``12.00`` too."""
    try:
        return Decimal((_last(completion, "</think>", "<answer>") or "").replace(",", "").strip()) == 12
    except InvalidOperation:
        return False


def _takes_b(completion: str) -> bool:
    text = _last(completion, "</think>", "<answer>", "\\boxed{")
    text = text.partition("}")[0] if "\\boxed{" in completion else text
    takes = any(taken in text for taken in ("B", "b", "Paris"))
    return takes and not any(other in text for other in ("Rome", "dog", "C", "A"))


def _is_well_formed(completion: str) -> bool:
    text = without_ending(completion)
    tags = ("<think>", "</think>", "<answer>", "</answer>")
    thought, answer = text.partition("</think>")[::2]
    return (
        all(text.count(tag) == 1 for tag in tags)
        and text.startswith("<think>")
        and text.endswith("</answer>")
        and bool(thought.removeprefix("<think>").strip())
        and bool(answer.replace("<answer>", "").replace("</answer>", "").strip())
    )


_ADD = "def add(a, b):\n    return a + b"
_SUM = {"task": "chain_sum", "entry": json.dumps({"question": "?", "answer": "12", "metadata": {}})}
_KNIGHT_KNAVE = ["Zoe is a knight", "Ben is a knave", "Zoe is a knave", "Ben is a knight", "(1) ", "Zoe", "Ben: knave"]

CASES: dict[str, Case] = {
    "knights_knaves": Case(
        pieces=[*_KNIGHT_KNAVE, "Zoe is a knight\nBen is a knave"],
        reference={"names": ["Zoe", "Ben"], "solution_text_format": "(1) Zoe is a knight\n(2) Ben is a knave"},
        holds_answer=_says_both,
    ),
    "countdown": Case(
        pieces=["3 + 4", "4 + 3", "3+4=7", "7", "(3 + 4)", "4 * 1 + 3", "34", "3 + 4 - 1"],
        reference={"numbers": [1, 3, 4], "target": 7},
        holds_answer=_is_sum_of_seven,
    ),
    "exact_match": Case(
        pieces=["Paris", "paris", "Par", "is", "Rome"],
        reference="Paris",
        holds_answer=lambda completion: _last(completion, "</think>", "<answer>") == "Paris",
    ),
    "multiple_choice": Case(
        pieces=["B", "(B)", "B.", "Paris", "Rome", "A", "C", "B) Paris", "\\boxed{B}", "\\text{B}"],
        reference={"answer": "B", "choices": ["Rome", "Paris", "A dog"]},
        holds_answer=_takes_b,
    ),
    "math_answer": Case(
        pieces=[
            "\\boxed{9901}",
            "9901",
            "9,901",
            "99^2+99+1",
            "\\boxed{99^2+99+1}",
            "9900",
            "9901.0",
            "1e4",
            "\\boxed{",
        ],
        reference="9901",
        holds_answer=lambda completion: "9901" in completion.translate(str.maketrans("", "", " ,{}\\!;\n\t$")),
    ),
    "math_verify": Case(
        pieces=["$\\boxed{9901}$", "\\boxed{9901}", "9901", "The answer is $9901$", "\\boxed{9900}", "$"],
        reference="9901",
        holds_answer=lambda completion: True,  # another project's judge: what it pays is TRL's (test_math_verify.py)
    ),
    "code_tests": Case(
        pieces=[_ADD, "```python\n" + _ADD + "\n```", "def add(a, b):", "    return a + b", "return a", "import os\n"],
        reference={"inputs": [[1, 2], [5, 7]], "outputs": [3, 12], "fn_name": "add"},
        holds_answer=lambda completion: "def add(a, b):" in completion and "a + b" in completion,
    ),
    "reasoning_gym": Case(
        pieces=["12", "13", "1 2", "<answer>12</answer>", "__import__('os')", "exit()"],
        reference=_SUM,
        holds_answer=_is_twelve,
    ),
    "format": Case(
        pieces=["<think>so</think>", "<answer>7</answer>", "<think>a", "b</answer>"],
        reference=None,
        holds_answer=_is_well_formed,
    ),
    "soft_overlong": Case(
        pieces=["word " * 30],
        reference=None,
        holds_answer=lambda completion: len(completion.split()) <= 80,
        spec={"name": "soft_overlong", "max_tokens": 100, "buffer_tokens": 20},
    ),
    "repetition_penalty": Case(
        pieces=["again ", "again and again "],
        reference=None,
        holds_answer=lambda completion: len(set(completion.split())) == len(completion.split()),
        spec={"name": "repetition_penalty", "ngram_size": 1},
    ),
    "cosine_length": Case(
        pieces=["Paris", "paris", "Rome"],
        reference="Paris",
        holds_answer=lambda completion: _last(completion, "</think>", "<answer>") == "Paris",
        spec={"name": "cosine_length", "verifier": "exact_match", "max_tokens": 100},
    ),
}


def test_every_verifier_is_fuzzed_and_has_rows_for_the_bench():
    reads_text = VERIFIERS.keys() - {"environment"}
    assert CASES.keys() == reads_text
    assert BUILT_IN.keys() == reads_text - {"math_verify"}, "whose known mistakes would be leaks: math_answer's rows"


def built(name: str) -> Verifier:
    if name == "reasoning_gym" and importlib.util.find_spec("reasoning_gym") is None:
        pytest.skip('reasoning_gym is not installed: pip install -e ".[dev]"')
    return build_verifier(CASES[name].spec or name)


@pytest.mark.parametrize("name", CASES)
def test_generated_completions(name: str):
    case, verifier = CASES[name], built(name)
    text = st.lists(st.sampled_from(case.pieces) | FRAGMENTS | st.text(max_size=4), max_size=14).map("".join)
    answer = st.lists(st.sampled_from(case.pieces) | FRAGMENTS, max_size=3).map("".join)
    completion = text | answer.map("<think>so</think><answer>{}</answer>".format) | answer.map(boxed) | answer

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(completion, min_size=BATCH, max_size=BATCH))
    def run(completions: list[str]) -> None:
        verdicts = verifier.judge_all(completions, [case.reference] * len(completions))
        assert len(verdicts) == len(completions)
        for each, verdict in zip(completions, verdicts, strict=True):
            assert verdict.score is not None, f"unscored, though the reference can be used: {each!r}, {verdict}"
            assert verdict.score < verifier.full_score or case.holds_answer(each), (each, verdict)
            assert isinstance(verdict.reason, str)
            assert verdict.reason

    run()


def boxed(answer: str) -> str:
    return f"<think>so</think>It is \\boxed{{{answer}}}"
