"""What a user's verifier is told before the model is loaded."""

from typing import Any

import pytest

from evenkeel.errors import Refusal
from evenkeel.rewards import Verdict, build_verifier
from evenkeel.rewards.references import check_rewards
from evenkeel.rewards.user_verifiers import traits
from evenkeel.rewards.verifier import Verifier

HERE = "tests.rewards.user_verifiers.written"
REFERENCES = [f"word{number}" for number in range(100)]


called: list[int] = []


def right(completion: str, reference: Any) -> float:
    return float(completion.split()[-1:] == [str(reference)])


def check(spec: Any) -> list[int]:
    rows = [{"prompt": "", "reference": reference} for reference in REFERENCES]
    return check_rewards({"mine": build_verifier(spec)}, {"mine": None}, REFERENCES, None, "data.train", rows=rows)


@pytest.mark.parametrize(
    "spec",
    [
        f"{HERE}:last_word",
        {"name": f"{HERE}:last_word", "returns": "bool"},
        f"{HERE}:misbehaving",
        f"{HERE}:short",
        f"{HERE}:with_alarm",
        {"name": f"{HERE}:of_trl", "scale": 2.0},
        lambda completions, ground_truth, **_: [right(*row) for row in zip(completions, ground_truth, strict=True)],
        lambda completion, reference: Verdict(len(set(completion) & set(str(reference))) / 9, completion, ""),
        lambda completion, reference: right(completion, reference) * len(called.append(1) or called) / len(called),
    ],
    ids=lambda spec: "a lambda" if callable(spec) else str(spec),
)
def test_one_that_judges_is_left_alone(spec: Any) -> None:
    assert check(spec) == list(range(100))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            type("Mine", (Verifier,), {"__call__": lambda verifier, text: 1.0}),
            "takes 2 positional arguments but 3 were given",
        ),
        (f"{HERE}:exits", r"sys.exit\('bye'\)"),
        (f"{HERE}:leaves", r"exit code 0"),
        ({"name": f"{HERE}:last_word", "returns": "text"}, "of type str, which is not a verdict. Return"),
        ({"name": f"{HERE}:last_word", "returns": "nan"}, "its score is nan"),
        ({"name": f"{HERE}:last_word", "returns": "everything"}, "pays everything"),
        (lambda completion, reference: 1 / 0, "ZeroDivisionError"),
        (traits(timeout_s=None)(lambda completion, reference: 1.0), "timeout_s = None is no time"),
        (lambda completion, reference: None, "scores none"),
        (lambda completion, reference: None if len(completion) > 4000 else right(completion, reference), "a bad"),
        (lambda completions, **_: [1.0], "1 rewards for 32 completions"),
        (lambda completions, depth: [1.0], "needs the column depth, and the rows have: reference"),
        (lambda completions, reference: [None if text else 0.0 for text in completions], "a bad completion"),
        (lambda completion, reference: 1e38 * (str(reference) in completion), r"1e\+38"),
    ],
    ids=lambda value: "a lambda" if callable(value) else str(value),
)
def test_one_that_would_cost_the_run_is_refused(spec: Any, said: str) -> None:
    with pytest.raises(Refusal, match=f"^data.train, mine: verifier .*{said}"):
        check(spec)


def test_one_that_is_paid_by_length_is_tried_and_bounded_too() -> None:
    paid = {"name": "cosine_length", "max_tokens": 100, "verifier": {"name": f"{HERE}:last_word"}}
    assert check(paid) == list(range(100))
    paid["verifier"] = f"{HERE}:sleeps"
    with pytest.raises(Refusal, match=r"timeout_s = 1 of its batch"):
        check(paid)
    solvable = build_verifier({"name": "cosine_length", "max_tokens": 100, "verifier": "countdown"})
    assert "no expression" in solvable.unanswerable({"numbers": [1, 1], "target": 50})
