"""Statistics over seeds: pure functions of arrays, numpy and scipy alone.

Shapes: S seeds (runs of one variant), I evaluation items, P evaluated points of a run.
NaN: an unscored item, or a value that a run does not have.
"""

from evenkeel.trainer.evaluation.shares import CONFIDENCE, Estimate, share_estimate
from evenkeel.trainer.lab.statistics.claim import ClaimAnswer, claim_answer
from evenkeel.trainer.lab.statistics.components import (
    DifferenceComponents,
    paired_components,
    unpaired_components,
)
from evenkeel.trainer.lab.statistics.curves import area_under_curve
from evenkeel.trainer.lab.statistics.intervals import (
    StatisticsError,
    mean_estimate,
    paired_difference,
    variance_parts,
)
from evenkeel.trainer.lab.statistics.planning import detectable_difference, planned_seeds, uncertainty, verdict_power
from evenkeel.trainer.lab.statistics.verdict import Verdict, holm_adjusted, power, seeds_needed, verdict

__all__ = [
    "CONFIDENCE",
    "ClaimAnswer",
    "DifferenceComponents",
    "Estimate",
    "StatisticsError",
    "Verdict",
    "area_under_curve",
    "claim_answer",
    "detectable_difference",
    "holm_adjusted",
    "mean_estimate",
    "paired_components",
    "paired_difference",
    "planned_seeds",
    "power",
    "seeds_needed",
    "share_estimate",
    "uncertainty",
    "unpaired_components",
    "variance_parts",
    "verdict",
    "verdict_power",
]
