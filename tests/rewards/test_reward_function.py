"""The adapter between a verifier and TRL, the check of references, and the datasets made on the spot."""

import math
from collections import defaultdict
from typing import Any

import pytest

from evenkeel.errors import Refusal
from evenkeel.rewards import RewardFunction, Verdict, build_verifier, reward_functions
from evenkeel.rewards.verifier import TokenVerifier, Verifier

REFERENCE = {"numbers": [3, 4], "target": 7}
RIGHT, WRONG = "<think> 3 + 4 </think> <answer> 3 + 4 </answer>", "<answer> 3 * 4 </answer>"


def batch(*completions: Any, **more: Any) -> dict[str, Any]:
    return {"prompts": [""] * len(completions), "completions": [*completions], **more}


class Logs:
    """What TRL's two hooks receive."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {}
        self.metrics: dict[str, list[float]] = defaultdict(list)
        self.hooks: dict[str, Any] = {
            "log_extra": self.columns.__setitem__,
            "log_metric": lambda name, value: self.metrics[name].append(value),
        }


def test_chat_and_plain_completions_score_alike_and_the_evidence_is_logged():
    reward, logs = RewardFunction(build_verifier("countdown"), "count"), Logs()
    chat = [[{"role": "assistant", "content": text}] for text in (RIGHT, WRONG, RIGHT)]
    references = [REFERENCE, REFERENCE, {"numbers": "unusable"}]
    scores = reward(**batch(*chat, reference=references, **logs.hooks))
    assert scores == reward(**batch(RIGHT, WRONG, RIGHT, reference=references)) == [1.0, 0.0, None]
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
    calls = batch(completion, prompts=[prompt], reference=[reference])
    assert RewardFunction(verifier, "kk", prefilled_thought=True)(**calls) == [-0.5]
    expected = -0.5 if isinstance(prompt, str) else -3.0  # a text prompt is looked at itself
    assert RewardFunction(verifier, "kk")(**calls) == [expected]


def test_rows_without_the_column_of_the_reference_are_refused_and_another_is_named():
    calls = batch("<answer>7</answer>", solution=["7"])
    with pytest.raises(Refusal, match=r"^exact: .* no column 'reference', only solution.*reference='solution'"):
        reward_functions({"exact": build_verifier("exact_match")})[0](**calls)
    assert reward_functions({"exact": build_verifier("exact_match")}, reference="solution")[0](**calls) == [1.0]
    assert RewardFunction(build_verifier("format"), "form")(**calls) == [0.0]
    assert RewardFunction(build_verifier("tests.rewards.user_verifiers.written:short"), "short")(**calls) == [1.0]


def test_a_verifier_that_fails_leaves_its_row_unscored_and_says_so():
    scores, logs = {"nan": math.nan, "fine": 1.0, "much": 1e38}, Logs()
    reward = RewardFunction(build_verifier(lambda completion, reference: scores[reference]), "failing")
    calls = batch(*[""] * 4, reference=["raise", "nan", "fine", "much"], **logs.hooks)
    assert reward(**calls) == [None, None, 1.0, None]
    reasons = logs.columns["failing/reason"]
    assert [said in reasons[row] for row, said in {0: "KeyError", 1: "nan", 3: "1e+38"}.items()] == [True] * 3


def constant(key: str, asked: list[str]) -> Verifier:
    """Scores every completion the reference's value for ``key``; ``None`` there = unscored."""

    def score(completion: str, reference: Any) -> Verdict:
        asked.append(key)
        return Verdict(reference[key], completion, key, killed=reference.get("killed", False))

    return build_verifier(score)


def test_a_row_is_unscored_by_all_functions_or_by_none_and_they_judge_each_batch_once_and_every_new_batch_again():
    asked: list[str] = []
    functions = reward_functions({"a": constant("a", asked), "b": constant("b", asked)})
    calls = batch(*"xyz", reference=[{"a": 1.0, "b": 0.1}, {"a": None, "b": 0.1}, {"a": 0.0, "b": None}])
    assert [function(**calls) for function in functions] == [[1.0, None, None], [0.1, None, None]]
    for score in (0.0, 1.0):
        calls = batch("x", reference=[{"a": 1.0, "b": score}])
        assert [function(**calls) for function in functions] == [[1.0], [score]]
    assert asked == [*"aaabbb", "a", "b", "a", "b"]


def test_a_function_of_a_task_judges_only_its_rows_and_the_first_one_says_what_is_right():
    verifiers = {"sums": constant("a", []), "words": constant("a", []), "form": constant("b", [])}
    functions = reward_functions(verifiers, tasks={"sums": "sums", "words": "words"})
    logs = Logs()
    reference = [{"a": 1.0, "b": 0.5}, *({"a": score, "b": 1.0} for score in (0.0, None, 1.0))]
    reference[3]["killed"] = True
    calls = batch(*"wxyz", reference=reference, task=["sums", "words", "words", "sums"], **logs.hooks)
    scores = [[1.0, None, None, 1.0], [None, 0.0, None, None], [0.5, 1.0, None, 1.0]]
    assert [function(**calls) for function in functions] == scores
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
    calls = batch(*"abc", reference=[None] * 3, task=["long", "other", "long"])
    assert reward(completion_ids=[[1], [1, 2], [1, 2, 3]], **calls) == [1.0, None, 3.0]
    assert reward(**calls) == [-1.0, None, -1.0]


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
    logs, nasty = Logs(), "a\ud800b\x1b[2J\x00\tc\n"
    quoting = build_verifier(lambda completion, reference: Verdict(0.0, completion, f"said {completion}"))
    RewardFunction(quoting, "quoting")(**batch(nasty, reference=[0], **logs.hooks))
    assert logs.columns["quoting/answer"] == ["a\\ud800b\\x1b[2J\\x00\tc\n"]
    assert logs.columns["quoting/reason"][0].encode("utf-8").startswith(b"said a")
