"""The adapter between a verifier and TRL, the check of references, and the datasets made on the spot."""

import math
from collections import defaultdict
from typing import Any

import pytest

from evenkeel.rewards import RewardFunction, Verdict, build_verifier, reward_functions
from evenkeel.rewards.verifier import TokenVerifier, Verifier

REFERENCE = {"numbers": [3, 4], "target": 7}
RIGHT, WRONG = "<think> 3 + 4 </think> <answer> 3 + 4 </answer>", "<answer> 3 * 4 </answer>"


class Logs:
    """What TRL's two hooks receive."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {}
        self.metrics: dict[str, list[float]] = defaultdict(list)

    def extra(self, column: str, values: list[Any]) -> None:
        self.columns[column] = values

    def metric(self, name: str, value: float) -> None:
        self.metrics[name].append(value)


def test_chat_and_plain_completions_score_alike_and_the_evidence_is_logged():
    reward, logs = RewardFunction(build_verifier("countdown"), "count"), Logs()
    chat = [[{"role": "assistant", "content": text}] for text in (RIGHT, WRONG, RIGHT)]
    references = [REFERENCE, REFERENCE, {"numbers": "unusable"}]
    arguments: dict[str, Any] = {"prompts": ["", "", ""], "reference": references, "trainer_state": None}
    scores = reward(completions=chat, log_extra=logs.extra, log_metric=logs.metric, **arguments)
    assert scores == [1.0, 0.0, None]
    assert scores == reward(completions=[RIGHT, WRONG, RIGHT], **arguments)
    assert logs.columns["count/answer"] == ["3 + 4", "3 * 4", None]
    assert logs.columns["count/reason"][1] == "equals 12, not 7"
    assert logs.metrics["verifier/count/accuracy"] == [1.0, 0.0]
    assert logs.metrics["verifier/count/frac_unscored"] == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("prompt", ["assistant <think>\n", [{"role": "user", "content": "?"}]])
def test_a_prefilled_thought_counts(prompt: Any):
    """The format −3 of the paper's scheme becomes −0.5 (well-formed, wrong) once the prefilled tag is counted."""
    reference = {"names": ["Ann", "Bob"], "solution_text_format": "(1) Ann is a knight\n(2) Bob is a knave"}
    completion = "hm </think> <answer> Ann is a knave, and Bob is a knight </answer>"
    verifier = build_verifier({"name": "knights_knaves", "scheme": "paper"})
    calls = {"prompts": [prompt], "completions": [completion], "reference": [reference]}
    assert RewardFunction(verifier, "kk", prefilled_thought=True)(**calls) == [-0.5]
    expected = -0.5 if isinstance(prompt, str) else -3.0  # a text prompt is looked at itself
    assert RewardFunction(verifier, "kk")(**calls) == [expected]


class Failing(Verifier):
    """Raises for one reference, scores NaN for another."""

    def __call__(self, completion: str, reference: Any) -> Verdict:
        if reference == "raise":
            raise KeyError("row 7")
        return Verdict({"nan": math.nan, "much": 1e38}.get(reference, 1.0), None, "")


def test_a_verifier_that_fails_leaves_its_row_unscored_and_says_so():
    logs = Logs()
    reward = RewardFunction(Failing(), "failing")
    calls = {"prompts": [""] * 4, "completions": [""] * 4, "reference": ["raise", "nan", "fine", "much"]}
    assert reward(**calls, log_extra=logs.extra) == [None, None, 1.0, None]
    assert "KeyError" in logs.columns["failing/reason"][0]
    assert "nan" in logs.columns["failing/reason"][1]
    assert "1e+38" in logs.columns["failing/reason"][3]


class Constant(Verifier):
    """Scores every completion the reference's value for it; ``None`` there = unscored."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __call__(self, completion: str, reference: Any) -> Verdict:
        return Verdict(reference[self.key], completion, self.key, killed=reference.get("killed", False))


def test_a_row_is_unscored_by_all_functions_or_by_none():
    first, second = reward_functions({"a": Constant("a"), "b": Constant("b")})
    reference = [{"a": 1.0, "b": 0.1}, {"a": None, "b": 0.1}, {"a": 0.0, "b": None}]
    calls: dict[str, Any] = {"prompts": [""] * 3, "completions": ["x", "y", "z"], "reference": reference}
    assert (first(**calls), second(**calls)) == ([1.0, None, None], [0.1, None, None])


def test_the_functions_of_a_run_judge_each_batch_once_and_every_new_batch_again():
    calls_of: list[str] = []

    class Counting(Constant):  # of no other process
        def __call__(self, completion: str, reference: Any) -> Verdict:
            calls_of.append(self.key)
            return super().__call__(completion, reference)

    functions = reward_functions({"a": Counting("a"), "b": Counting("b")})
    for batch in range(2):
        calls: dict[str, Any] = {"prompts": [""], "completions": ["x"], "reference": [{"a": 1.0, "b": float(batch)}]}
        assert [function(**calls) for function in functions] == [[1.0], [float(batch)]]
    assert calls_of == ["a", "b"] * 2


def test_a_function_of_a_task_judges_only_its_rows_and_the_first_one_says_what_is_right():
    verifiers = {"sums": Constant("a"), "words": Constant("a"), "form": Constant("b")}
    functions = reward_functions(verifiers, tasks={"sums": "sums", "words": "words"})
    logs = Logs()
    reference = [
        {"a": 1.0, "b": 0.5},
        {"a": 0.0, "b": 1.0},
        {"a": None, "b": 1.0},
        {"a": 1.0, "b": 1.0, "killed": True},
    ]
    calls: dict[str, Any] = {
        "prompts": [""] * 4,
        "completions": list("wxyz"),
        "reference": reference,
        "task": ["sums", "words", "words", "sums"],
        "log_extra": logs.extra,
        "log_metric": logs.metric,
    }
    assert [function(**calls) for function in functions] == [
        [1.0, None, None, 1.0],
        [None, 0.0, None, None],
        [0.5, 1.0, None, 1.0],
    ]
    assert logs.columns["correct"] == [True, False, None, True]
    assert logs.columns["sums/answer"] == ["w", None, None, "z"]
    assert logs.metrics["verifier/accuracy"] == [1.0, 0.0, 1.0]
    assert logs.metrics["verifier/sums/frac_killed"] == [0.0, 1.0]
    assert logs.metrics["verifier/words/frac_unscored"] == [0.0, 1.0]
    assert len(logs.metrics["verifier/form/time_p99_s"]) == 1


def test_a_verifier_of_tokens_gets_those_that_were_sampled_for_its_rows():
    class Length(TokenVerifier):
        def __call__(self, completion: str, reference: Any, token_ids: Any = None) -> Verdict:
            return Verdict(float(-1 if token_ids is None else len(token_ids)), None, "")

    reward = RewardFunction(Length(), "length", task="long")
    calls: dict[str, Any] = {"prompts": [""] * 3, "reference": [None] * 3, "task": ["long", "other", "long"]}
    assert reward(completions=list("abc"), completion_ids=[[1], [1, 2], [1, 2, 3]], **calls) == [1.0, None, 3.0]
    assert reward(completions=list("abc"), **calls) == [-1.0, None, -1.0]


@pytest.mark.parametrize(
    ("messages", "score"),
    [
        ([{"role": "assistant", "content": "<answer>7</answer>"}], 1.0),
        ([{"role": "assistant", "content": [{"type": "text", "text": "<answer>"}, {"text": "7</answer>"}]}], 1.0),
        ([{"role": "assistant", "reasoning_content": "six?", "content": "<answer>7</answer>"}], 1.0),
        ([{"role": "assistant", "reasoning_content": "<answer>7</answer>", "content": ""}], 0.0),
        ([{"role": "assistant", "content": None}], 0.0),
        ([{"role": "assistant", "tool_calls": []}], 0.0),
        ([], 0.0),
    ],
)
@pytest.mark.parametrize("prefilled", [False, True])
def test_a_turn_in_whatever_form_is_scored(messages: list[dict[str, Any]], score: float, prefilled: bool):
    """A thought that was pre-filled and never closed has no answer after it."""
    reward = RewardFunction(build_verifier("exact_match"), "exact", prefilled_thought=prefilled)
    closed = not prefilled or "reasoning_content" in (messages or [{}])[-1]
    assert reward(prompts=[[]], completions=[messages], reference=["7"]) == [score * closed]


def test_what_a_model_writes_into_the_evidence_can_be_stored_and_shown():
    class Quoting(Verifier):
        def __call__(self, completion: str, reference: Any) -> Verdict:
            return Verdict(0.0, completion, f"said {completion}")

    logs = Logs()
    nasty = "a\ud800b\x1b[2J\x00\tc\n"
    RewardFunction(Quoting(), "quoting")(prompts=[""], completions=[nasty], reference=[0], log_extra=logs.extra)
    assert logs.columns["quoting/answer"] == ["a\\ud800b\\x1b[2J\\x00\tc\n"]
    assert logs.columns["quoting/reason"][0].encode("utf-8").startswith(b"said a")
