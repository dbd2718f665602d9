"""Does a verifier accept every gold answer, pay nothing else, and always come to an end? Measured, not believed."""

from evenkeel.rewards.bench.bench import Bench, Finding, bench
from evenkeel.rewards.bench.built_in import BUILT_IN, built_in_rows
from evenkeel.rewards.bench.table import as_json, as_table
from evenkeel.rewards.bench.trials import Row, Trial, trials

__all__ = [
    "BUILT_IN",
    "Bench",
    "Finding",
    "Row",
    "Trial",
    "as_json",
    "as_table",
    "bench",
    "built_in_rows",
    "trials",
]
