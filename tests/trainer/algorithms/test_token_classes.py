"""Classes of tokens, and entropies by class."""

import pytest
import torch

from evenkeel.trainer.algorithms.token_classes import CLASSES, class_of, class_table, entropies_by_class


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("12", "number"),
        ("x2", "number"),
        ("²", "number"),
        (" the", "word"),
        ("é", "word"),
        ("因", "word"),
        (" +", "symbol"),
        ("\n", "symbol"),
        ("\ufffd", "symbol"),
        ("", "symbol"),
    ],
)
def test_a_digit_goes_before_a_letter_and_a_letter_before_the_rest(text: str, name: str):
    assert CLASSES[class_of(text)] == name


def test_special_tokens_are_special_whatever_they_say():
    assert [CLASSES[each] for each in class_table(["<eos>", "eos", "1"], {0})] == ["special", "word", "number"]


def test_sums_and_counts_by_class():
    classes = torch.tensor([[0, 1, 1, 3], [2, 1, 0, 0]])
    entropies = torch.tensor([[1.0, 2.0, 4.0, 8.0], [16.0, 32.0, 64.0, torch.nan]])
    sums, counts = entropies_by_class(entropies, classes, torch.tensor([[1, 1, 1, 1], [1, 0, 1, 0]]))
    assert sums.tolist() == [65, 6, 16, 8]
    assert counts.tolist() == [2, 2, 1, 1]
