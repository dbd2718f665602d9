"""The benchmark of shared prompts counts what it says."""

from scripts.benchmarks.shared_prompts import compared, scored_policy
from scripts.benchmarks.update import Size


def test_tokens_and_work_of_a_group_of_eight():
    """Of 40 + 20 tokens: 480 apart, 199 in one sequence. Attention is as dear as the rest at 1,024 tokens:
    the work is 480 · (1 + 60 / 1,024) = 508 and 199 · (1 + 199 / 1,024) = 238."""
    result = compared(scored_policy(Size(128, 1, 32, "float32", 1, 8, 8, 40, 20, 60)), 40, 20, rounds=1)
    assert result["times_fewer_tokens"] == 480 / 199
    assert result["times_less_work"] == 508 / 238
    assert result["is_shared"]
