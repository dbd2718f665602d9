"""Which choice a completion takes, and which completions take none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.rewards.verifiers.multiple_choice import MultipleChoice

CAPITALS = {"answer": "C", "choices": ["Rome", "A dog", "Paris", "I am sure"]}

TAKES_C = ["C", "(C)", "C.", "(C) Paris", "C: paris.", "Paris", "**C**", "$\\text{C}$", "\\textbf{(C)}"]
TAKES_C += ["Option C", "option (c): Paris", "C — Paris", "C - Paris"]
TAKES_ANOTHER = ["B", "Rome", "A dog", "I am sure"]
TAKES_NONE = ["A or C", "C or D", "C, D", "(C) or (D)", "C. Rome", "not C", "C?", "", "Rome or Paris", "2"]
TAKES_NONE += ["Option C or D", "No option", "The answer is not C", "C — Rome", "Option C, Option D", "Options C"]


@pytest.mark.parametrize("answer", TAKES_C)
def test_the_right_choice_in_its_spellings(answer):
    for completion in (
        f"<think>A? B?</think><answer> {answer} </answer>",
        f"The answer is: {answer}",
        f"Hm.\nThe answer is: {answer}",
        answer,
    ):
        verdict = MultipleChoice()(completion, CAPITALS)
        assert (verdict.score, verdict.answer) == (1.0, "C"), completion


@pytest.mark.parametrize("answer", [*TAKES_ANOTHER, *TAKES_NONE])
def test_another_choice_or_none(answer):
    for completion in (f"<answer>{answer}</answer>", f"The answer is: {answer}", answer):
        assert MultipleChoice()(completion, CAPITALS).score == 0.0, completion


HEDGED = ["C. no, wait, it is d", "C) or b)", "C. also b", "(C) but maybe (b)", "C. C"]


@pytest.mark.parametrize("reference", ["C", 2, CAPITALS], ids=["letter", "position", "choices"])
def test_a_letter_that_is_taken_back_or_joined_by_another(reference):
    for answer in HEDGED:
        for completion in (f"<answer>{answer}</answer>", f"\\boxed{{{answer}}}", f"The answer is {answer}"):
            assert MultipleChoice()(completion, reference).score == 0.0, completion


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("<think>x</think> so \\boxed{C}.", 1),
        ("<think>\\boxed{C}</think> \\boxed{B}", 0),
        ("\\boxed{B} no, \\boxed{C}", 1),
        ("\\boxed{B} or \\boxed{C}", 0),
        ("\\boxed{C} So \\boxed{C}", 1),
        ("<answer>C</answer><answer>B</answer>", 0),
        ("<answer>\\boxed{C}</answer>", 1),
        ("Therefore, the correct option is (C).", 1),
        ("The answer is not C", 0),
        ("Which one?\nA. Rome\nC. Paris", 0),
        ("A dog barks, so the answer is C", 0),
    ],
)
def test_where_the_answer_is_read(completion, score):
    assert MultipleChoice()(completion, CAPITALS).score == score


@pytest.mark.parametrize(
    ("reference", "completion", "score"),
    [
        ("b", "<answer>B</answer>", 1),
        (1, "<answer>B</answer>", 1),
        ({"answer": 1, "choices": ["x", "y"]}, "<answer>y</answer>", 1),
        ({"answer": "(B)", "choices": ["x", "y"]}, "<answer>x</answer>", 0),
        ({"answer": "2", "choices": {"text": ["x", "y"], "label": ["1", "2"]}}, "<answer>2</answer>", 1),
        ({"answer": "2", "choices": {"text": ["x", "y"], "label": ["1", "2"]}}, "<answer>B</answer>", 0),
        ({"answer": 1, "choices": {"text": ["x", "y"], "label": ["1", "2"]}}, "<answer>1</answer>", 1),
        ({"answer": "2", "choices": {"text": ["5", "1-5"], "label": ["1", "2"]}}, "<answer>1-5</answer>", 1),
        ({"answer": 0, "choices": {"text": ["x", "y"], "label": ["1", "2"]}}, "<answer>1</answer>", 1),
        ({"answer": "B", "choices": ["x", "option y"]}, "The answer is: Option y", 1),
        ({"answer": "B", "choices": ["same", "same"]}, "<answer>same</answer>", 1),
        ("B", "<answer>B. A dog</answer>", 0),
        ("B", "<answer>B. Something</answer>", 0),
        ("B", "<answer>B) A</answer>", 0),
        ("BC", "B", None),
        (26, "B", None),
        (True, "B", None),
        (None, "B", None),
        ({"answer": "C", "choices": ["x", "y"]}, "C", None),
        ({"answer": "A"}, "A", None),
        ({"answer": "A", "choices": "xy"}, "A", None),
        ({"answer": "A", "choices": {"text": ["x", "y"], "label": ["A", "a"]}}, "A", None),
    ],
)
def test_references(reference, completion, score):
    assert MultipleChoice()(completion, reference).score == score


@given(st.integers(0, 25))
def test_gold_is_right_and_every_other_letter_wrong(position):
    verifier = MultipleChoice()
    for other in range(26):
        assert verifier(verifier.gold_completion(other), position).score == float(other == position)
