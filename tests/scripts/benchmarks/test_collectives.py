"""The table of collectives: on two processes, what is ours beyond stock TRL's, and the same number of weight syncs."""

import pytest

from scripts.benchmarks.collectives import counted
from scripts.benchmarks.update import Size


@pytest.mark.slow
def test_ours_is_added_to_what_stock_says() -> None:
    stock, own_cut, run_file = counted(Size(128, 1, 32, "float32", 2, 2, 2, 4, 8, 16)).values()
    for found in (own_cut, run_file):
        assert {place: count for place, count in found.items() if "/" in place} == stock
    assert stock["trl/grpo_trainer.py:_generate_single_turn weight_sync"] == 1
    assert own_cut["advantages.py:signals allgather"] == run_file["advantages.py:signals allgather"]
    assert {*run_file} - {*own_cut} == {"microbatches.py:_plan allgather", "metrics.py:read allgather"}
    assert own_cut["metrics.py:finish_step allreduce"] == run_file["metrics.py:finish_step allreduce"] == 1
