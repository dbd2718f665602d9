"""The pure parts of a revision: references, repair scores, edits, options."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.revisions import credited_tokens, edit_mask, references, repair_scores

NAN = float("nan")
verdicts = st.lists(st.sampled_from([0.0, 1.0, NAN]), min_size=8, max_size=8)


@given(verdicts=verdicts, count=st.integers(1, 3), seed=st.integers(0, 9), need_correct=st.booleans())
def test_references_are_other_scored_siblings_right_ones_first(verdicts, count: int, seed: int, need_correct: bool):
    correct = torch.tensor(verdicts)
    chosen = references(correct, 4, count, seed, need_correct=need_correct)
    assert torch.equal(chosen, references(correct, 4, count, seed, need_correct=need_correct))
    for row, siblings in enumerate(chosen.tolist()):
        group = range(row // 4 * 4, row // 4 * 4 + 4)
        right = [i for i in group if verdicts[i] == 1]
        wrong = [i for i in group if verdicts[i] == 0 and i != row]
        revised = verdicts[row] == 0 and (right or not need_correct)
        taken = [sibling for sibling in siblings if sibling >= 0]
        assert len(taken) == len(set(taken)) == (min(count, len(right) + len(wrong)) if revised else 0)
        assert siblings == taken + [-1] * (count - len(taken))
        assert set(taken) <= {*right, *wrong}
        assert sum(sibling in right for sibling in taken) == (min(count, len(right)) if revised else 0)


def test_more_references_than_siblings_are_refused():
    with pytest.raises(ValueError, match="Write 1 to 3"):
        references(torch.zeros(4), 4, 4, 0)


def test_the_repair_score_is_the_share_of_scored_revisions_that_are_right():
    repaired = torch.tensor([[1.0, 0.0, NAN], [1.0, 1.0, 1.0], [NAN, NAN, NAN], [0.0, NAN, 0.0]])
    assert repair_scores(repaired).tolist() == [0.5, 1.0, 0.0, 0.0]


def distance(first: list[int], second: list[int]) -> int:
    """Levenshtein's distance by its recurrence, row by row."""
    before = list(range(len(second) + 1))
    for i, left in enumerate(first):
        row = [i + 1]
        for j, right in enumerate(second):
            row.append(min(before[j + 1] + 1, row[j] + 1, before[j] + (left != right)))
        before = row
    return before[-1]


ids = st.lists(st.integers(0, 3), max_size=12)


@given(completion=ids, revision=ids, shared=ids)
def test_an_alignment_is_a_shortest_one_and_keeps_every_shared_prefix(completion, revision, shared):
    mask = edit_mask(completion, revision).tolist()
    kept = [token for token, edited in zip(completion, mask, strict=True) if not edited]
    rest = iter(revision)
    assert all(token in rest for token in kept), "what is kept stands in the revision, in the same order"
    inserted = distance(completion, revision) - sum(mask)
    replaced = len(revision) - len(kept) - inserted
    assert inserted >= 0
    assert 0 <= replaced <= sum(mask)
    if completion[:1] != revision[:1]:
        assert not edit_mask(shared + completion, shared + revision)[: len(shared)].any()


def test_the_nearest_repair_or_all_of_them_say_where_credit_goes():
    completion, near, far = [1, 2, 3, 4], [1, 2, 9, 4], [9, 9, 3, 4]
    assert credited_tokens(completion, []).tolist() == [True] * 4
    assert credited_tokens(completion, [far, near]).tolist() == [False, False, True, False]
    assert credited_tokens(completion, [far, near], "any_edit").tolist() == [True, True, True, False]
