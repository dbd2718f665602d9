"""One look at a comparison while its seeds come in: decided, hopeless, or going on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.statistics.sequential import predictive_power
from evenkeel.trainer.lab.statistics.verdict import outcome_of

LookOutcome = Literal["better", "worse", "hopeless", "goes on", "not distinguishable", "no verdict", "left out"]
STOPS: tuple[LookOutcome, ...] = ("better", "worse", "hopeless")


@dataclass(frozen=True)
class Look:
    """What a look saw and did.

    Attributes:
        seeds: the planned number.
        level: of its test.
        difference: with the interval of confidence 1 − level; ``None`` of a look that was left out for a missing run.
        chance: predictive power of the last look; NaN at the last one.
        outcome: "better", "worse" and "hopeless" end the comparison; at the last look what a verdict says.
    """

    seeds: int
    level: float
    difference: Estimate | None
    chance: float
    outcome: LookOutcome

    @property
    def stops(self) -> bool:
        """Whether seeds that were still to come are not needed."""
        return self.outcome in STOPS and not math.isnan(self.chance)


def look_at(
    difference: Estimate | None, looks: Sequence[int], levels: Sequence[float], position: int, futility: float
) -> Look:
    """The look at ``position``; ``difference`` is given with confidence 1 − ``levels[position]``.

    A comparison is hopeless where its `predictive_power` is below ``futility``. That rule does not bind: the levels are
    those of looks without it, so that who goes on after a hopeless look errs in 5 % all the same.
    """
    seeds, level = looks[position], levels[position]
    if difference is None:
        return Look(seeds, level, None, math.nan, "left out")
    told = outcome_of(difference)
    if position == len(looks) - 1:
        return Look(seeds, level, difference, math.nan, told)
    chance = predictive_power(difference, looks[-1], levels[-1])
    if told in ("better", "worse"):
        return Look(seeds, level, difference, chance, told)
    return Look(seeds, level, difference, chance, "hopeless" if chance < futility else "goes on")
