"""The adapter between a verifier and TRL, the check of references, and the datasets made on the spot."""

import pickle
from collections import defaultdict
from typing import Any

import pytest

from rewards import GENERATORS, RewardFunction, Verdict, build_verifier
from rewards.references import UnusableReferenceError, check_references
from rewards.verifier import Verifier

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
    assert logs.metrics["verifier/count/frac_unjudged"] == [0.0, 0.0, 1.0]


def test_it_has_a_name_and_can_be_pickled():
    reward = RewardFunction(build_verifier("countdown"), "count")
    assert reward.__name__ == "count"
    assert pickle.loads(pickle.dumps(reward))(prompts=[""], completions=[RIGHT], reference=[REFERENCE]) == [1.0]


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
        return Verdict(float("nan") if reference == "nan" else 1.0, None, "")

    def gold_completion(self, reference: Any) -> str | None:
        return "gold"


def test_a_verifier_that_fails_leaves_its_row_unjudged_and_says_so():
    logs = Logs()
    reward = RewardFunction(Failing(), "failing")
    calls = {"prompts": [""] * 3, "completions": [""] * 3, "reference": ["raise", "nan", "fine"]}
    assert reward(**calls, log_extra=logs.extra) == [None, None, 1.0]
    assert "KeyError" in logs.columns["failing/reason"][0]
    assert "nan" in logs.columns["failing/reason"][1]


def test_unusable_references_are_named_with_their_rows():
    with pytest.raises(UnusableReferenceError, match=r"1 rows.*\n  row 1: unjudged"):
        check_references(build_verifier("countdown"), [REFERENCE, {"numbers": [1]}], "data.train")
    with pytest.raises(UnusableReferenceError, match=r"row 0: the verifier raised KeyError"):
        check_references(Failing(), ["raise"], "data.train")
    with pytest.raises(UnusableReferenceError, match=r"7 rows.*\n(.*\n){5}  … and 2 more"):
        check_references(Failing(), ["raise"] * 7, "data.train")


def test_a_gold_answer_that_the_verifier_refuses_is_found():
    with pytest.raises(UnusableReferenceError, match=r"its own answer scores nan instead of 1.0"):
        check_references(Failing(), ["nan"], "data.train")


@pytest.mark.parametrize(
    ("name", "options"), [("knights_knaves", {"num_people": [3, 4]}), ("countdown", {"num_numbers": 3})]
)
def test_generated_parts_are_disjoint_and_their_gold_answers_are_accepted(name: str, options: dict[str, Any]):
    parts = {part: GENERATORS[name](part=part, train=40, test=20, seed=5, **options) for part in ("train", "test")}
    levels = len(options["num_people"]) if "num_people" in options else 1
    assert [len(rows) for rows in parts.values()] == [40 * levels, 20 * levels]
    questions = [row["prompt"] for rows in parts.values() for row in rows]
    assert len(set(questions)) == len(questions)
    for part, rows in parts.items():
        check_references(build_verifier(name), [row["reference"] for row in rows], part)
    assert parts["test"] == GENERATORS[name](part="test", train=80, test=20, seed=5, **options)
