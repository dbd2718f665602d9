r"""Answers that a marker states: ``#### 12``, "The final answer is $12$.", "**Answer:** 12".

174 pairs were written before any rule, and half of each kind set aside (``aside``) until the rules stood. Scored first,
1 of the 42 right ones aside was refused ("The answer is therefore 12.") and none of the 45 wrong ones paid; of the
others 0 of 42 and 1 of 45, which stays (``paid`` says why). ``learned`` were written after the rules, against them;
so were 58 more (``second``): 4 of their 26 right ones were refused and 1 of 32 wrong ones paid before the mends.
"""

import json
from pathlib import Path

import pytest

from evenkeel.rewards.verifiers.math_answer import MathAnswer
from tests.paths import SHARED_DATA
from tests.rewards.bounded import ends_in_bounded_time

PAIRS = json.loads((Path(__file__).parent / "marked_pairs.json").read_text(encoding="utf-8"))
MARKED = MathAnswer(answer_in="marked", workers=1)


def test_each_pair_is_scored_as_labelled():
    verdicts = MARKED.judge_all([pair["completion"] for pair in PAIRS], [pair["gold"] for pair in PAIRS])
    assert [
        (pair, verdict)
        for pair, verdict in zip(PAIRS, verdicts, strict=True)
        if verdict.score != float("paid" in pair or (pair["right"] and "refused" not in pair))
    ] == []


def test_solutions_of_gsm8k_are_golds_and_answer_themselves_alone():
    path = SHARED_DATA / "gsm8k_train.jsonl"
    if not path.exists():
        pytest.skip("shared/data/gsm8k_train.jsonl is not beside this checkout")
    solutions = [json.loads(line)["answer"] for line in path.read_text(encoding="utf-8").splitlines()[:1000]]
    numbers = [solution.rpartition("#### ")[2].replace(",", "") for solution in solutions]

    def scores(completions):
        return [verdict.score for verdict in MARKED.judge_all(completions, solutions)]

    for right in (solutions, [f"The answer is ${number}." for number in numbers]):
        assert scores(right) == [1.0] * len(solutions)
    assert all(MARKED(MARKED.gold_completion(solution), solution).score == 1 for solution in solutions)
    assert scores(solutions[1:] + solutions[:1]) == [
        float(number == other) for number, other in zip(numbers, numbers[1:] + numbers[:1], strict=True)
    ]


@pytest.mark.parametrize("piece", ["#### ", "the answer to a ", "#### Step\n", ". ", "the final ", "**", " ", "."])
def test_a_marked_answer_is_found_in_linear_time(piece):
    text = piece * (500_000 // len(piece)) + "the answer is 1"
    assert ends_in_bounded_time("evenkeel.rewards.extraction:marked_answer", text)
