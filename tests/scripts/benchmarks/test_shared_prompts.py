"""The benchmark of shared prompts counts what it says."""

import torch

from scripts.benchmarks.shared_prompts import _model, compared


def test_tokens_and_work_of_a_group_of_eight():
    """Of 4 + 2 tokens: 48 apart, 3 + 16 shared, in a longer sequence: less is gained in work than in tokens."""
    result = compared(_model(128, 1, 32, torch.float32), 4, 2, rounds=1)
    assert result["times_fewer_tokens"] == 48 / 19
    assert 2.2 < result["times_less_work"] < 48 / 19
    assert result["is_shared"]
    assert [len(each) for each in result["seconds"].values()] == [1, 1]
