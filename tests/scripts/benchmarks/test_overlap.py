"""The benchmark of generation beside training: it trains both ways, and its table says what could be gained."""

from scripts.benchmarks.overlap import BATCHES, overlaps, table
from scripts.benchmarks.update import Size

TINY = Size(128, 1, 32, "float32", 2, 2, 2, 4, 8, 16)


def test_both_ways_are_timed_in_each_round():
    found = overlaps(TINY, [1.0], rounds=1, say=lambda line: None)
    assert [len(seconds) for seconds in found[1.0].values()] == [1, 1]
    assert min(map(min, found[1.0].values())) > 0


def test_what_could_be_gained_is_the_shorter_of_the_two():
    """Generation 1, the rest 1: 6 · 2 before; beside it 1 for the first batch, five of 1, and 1 for the last."""
    assert BATCHES == 6
    (row,) = [*table({1.0: {"before": [3.0, 2.0], "beside": [2.0, 1.0]}})][1:]
    assert row == "| 1 | 1.75 [1.50, 2.00] | 1.71 |"
