"""Graders are compared on the same pairs; what each gets wrong is counted by the label, not by another grader."""

import json

from scripts.benchmarks.math_verifiers import comparison_of_graders, labelled_pairs, rates, rates_of_graders

PAIRS = [
    {"class": "a", "gold": "2^{-2017}", "answer": "2^{-2018}", "right": False},
    {"class": "a", "gold": "3,5", "completion": "\\boxed{5} or \\boxed{3}", "right": True},
    {"class": "b", "gold": "2", "answer": "2", "right": True},
    {"class": "b", "gold": "", "answer": "2", "right": True},
]


def written(folder):
    file = folder / "pairs.json"
    file.write_text(json.dumps(PAIRS))
    return labelled_pairs(file)


def test_an_answer_is_boxed_and_a_completion_is_taken_whole(tmp_path):
    first, second, *_ = written(tmp_path)
    assert first.completion == "Therefore the answer is $\\boxed{2^{-2018}}$."
    assert second.completion == "\\boxed{5} or \\boxed{3}"


def test_errors_are_counted_by_the_label(tmp_path):
    found = rates(lambda completions, golds: [1.0, 0.0, 1.0, None], written(tmp_path))
    assert (found.right, found.wrong, found.unjudged) == (3, 1, 1)
    assert [pair.gold for pair in found.false_positives] == ["2^{-2017}"]
    assert [pair.gold for pair in found.false_negatives] == ["3,5", ""]


def test_the_table_names_each_grader_and_our_errors(tmp_path):
    pairs = written(tmp_path)
    measured = rates_of_graders(pairs, lambda completions, solution: [1.0] * len(completions))
    table = comparison_of_graders(measured, pairs, list_errors=True)
    _, _, ours, math_verify, bare, in_dollars, _, _, _, first, second, error = table.splitlines()
    assert ours.startswith("| Evenkeel `math_answer` | 1 of 3 (33.3%) | 0 of 1 (0.0%) | 1 |")
    assert math_verify.startswith("| math-verify")
    assert "| 0 of 3 (0.0%) | 1 of 1 (100.0%) | 0 |" in bare
    assert "| 0 of 3 (0.0%) | 1 of 1 (100.0%) | 0 |" in in_dollars
    assert first == "| a | 0 of 1 (0.0%) | 0 of 1 (0.0%) |"
    assert second == "| b | 1 of 2 (50.0%) | none |"
    assert error.startswith("refused, b:  <- ")
