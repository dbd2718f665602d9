"""Structure, length and repetition, against the formulae worked out by hand."""

import json
import math
from pathlib import Path

import pytest

from evenkeel.rewards.extraction import without_ending
from evenkeel.rewards.verifiers.exact_match import ExactMatch
from evenkeel.rewards.verifiers.formatting import (
    CosineLength,
    Format,
    RepetitionPenalty,
    SoftOverlong,
    overlong_punishment,
    repeated_share,
)

HERE = Path(__file__)
VISIBLE = [row for half in json.loads(HERE.with_name("visible_texts.json").read_text("utf-8")).values() for row in half]
"""In two halves: `aside` was written with the other and looked at after the fix alone."""

THINK_ANSWER = [
    ("<think>2 + 2</think><answer>4</answer>", 1),
    (" <think>\n2 + 2\n</think>\n\n<answer>4</answer>\n<|im_end|>\n", 1),
    ("<think></think><answer>4</answer>", 0),
    ("<think>2 + 2</think><answer> </answer>", 0),
    ("<think>\u200b \u2060\ufeff\u00ad</think><answer>4</answer>", 0),
    ("<think>\u200b2\u200b</think><answer>4</answer>", 1),
    ("<think>2 + 2</think></think><answer>4</answer>", 0),
    ("<think>2 + 2</think><answer>4</answer><answer>5</answer>", 0),
    ("<think>2 + 2</think><answer>4</answer> I hope this helps", 0),
    ("Well. <think>2 + 2</think><answer>4</answer>", 0),
    ("<think>2 + 2</think>So: <answer>4</answer>", 0),
    ("<think>2 + 2<answer>4</answer></think>", 0),
    ("<think>2 + 2</think>4", 0),
    ("<Think>2 + 2</Think><Answer>4</Answer>", 0),
    ("", 0),
]


THINK = [
    ("<think>2 + 2</think> It is 4.", 1),
    ("<think>2 + 2</think> <|im_end|>", 0),
    ("<think> </think> It is 4.", 0),
    ("It is <think>2 + 2</think> 4.", 0),
]


@pytest.mark.parametrize(
    ("tags", "completion", "score"),
    [*(("think_answer", *row) for row in THINK_ANSWER), *(("think", *row) for row in THINK)],
)
def test_the_tags_stand_where_they_belong(tags, completion, score):
    assert Format(tags=tags)(completion, {"any": "reference"}).score == score


@pytest.mark.parametrize("row", VISIBLE, ids=lambda row: row["name"])
def test_a_thought_and_an_answer_are_texts_that_show_something(row):
    for thought, answer in (row["text"], "4"), ("2 + 2", row["text"]):
        assert Format()(f"<think>{thought}</think><answer>{answer}</answer>", None).score == row["shows"]


@pytest.mark.parametrize(
    ("num_tokens", "score"),
    [
        (0, 0.0),
        (80, 0.0),
        (81, -0.05),  # (100 − 20 − 81) / 20
        (90, -0.5),  # (80 − 90) / 20
        (100, -1.0),  # (80 − 100) / 20
        (101, -1.0),
    ],
)
def test_soft_overlong_punishment(num_tokens, score):
    assert overlong_punishment(num_tokens, 100, 20) == score
    assert SoftOverlong(max_tokens=100, buffer_tokens=20)("text", None, list(range(num_tokens))).score == score


def test_cosine_length_pays_right_and_wrong_by_their_length():
    verifier = CosineLength(verifier=ExactMatch(), max_tokens=100)
    right, wrong = (
        [verifier(text, "Paris", range(n)).score for n in (0, 25, 50, 99)]
        for text in ("Paris", "<answer>Rome</answer>")
    )
    cosines = [1, math.sqrt(0.5), 0, math.cos(0.99 * math.pi)]
    assert right == pytest.approx([1.5 + cosine / 2 for cosine in cosines])  # 1 + ½·(2 − 1)·(1 + cos)
    assert wrong == pytest.approx([-5 * (1 + cosine) for cosine in cosines])  # 0 + ½·(−10 − 0)·(1 + cos)
    assert [verifier(text, "Paris", range(n)).score for text in ("Paris", "Rome") for n in (100, 101)] == [-10] * 4
    assert verifier("Paris", None, range(50)).score is None
    assert verifier.full_score == 1.0


@pytest.mark.parametrize(
    ("ids", "ngram_size", "share"),
    [
        ([1, 2, 3, 4], 2, 0.0),
        ([5, 5, 5, 5, 5], 2, 0.75),  # 4 bigrams, 1 of them different
        ([1, 2, 3, 1, 2, 3, 1], 3, 2 / 5),  # 123 231 312 | 123 231: 5 trigrams, 3 different
        ([1, 1], 3, 0.0),
        ([], 1, 0.0),
        ([7], 1, 0.0),
    ],
)
def test_repetition(ids, ngram_size, share):
    assert repeated_share(ids, ngram_size) == pytest.approx(share)
    verifier = RepetitionPenalty(ngram_size=ngram_size, max_penalty=-2.0)
    assert verifier("text", None, ids).score == pytest.approx(-2 * share)


def test_a_hundred_thousand_end_tokens_are_cut():
    assert without_ending("a" + " </s>" * 100_000) == "a"
