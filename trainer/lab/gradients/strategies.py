"""The strategies that the bench compares: names of parts joined by +, with GRPO's parts as defaults."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, TOKEN_WEIGHT, UPDATE_SCHEDULE
from evenkeel.trainer.algorithms.mixtures import find_estimator
from evenkeel.trainer.algorithms.registry import built_in
from evenkeel.trainer.algorithms.strategies import Strategies, build_strategies

KINDS = (ADVANTAGE, TOKEN_WEIGHT, COEFFICIENT, UPDATE_SCHEDULE)
DEFAULTS = {TOKEN_WEIGHT: "uniform", UPDATE_SCHEDULE: "single_pass"}
"""Parts that leave the update unchanged, and are not compared."""
BASELINE = "grpo"


@dataclass(frozen=True)
class Named:
    """A strategy as it was asked for, and its parts."""

    name: str
    parts: Strategies


def named_strategy(name: str) -> Named:
    """``grpo``, ``adv_reweight``, ``rloo+adv_reweight+lopti``, ``my_parts:function`` (an advantage).

    Raises:
        PartError: no part of that name, two of one kind, or a part that cannot be built.
    """
    chosen: dict[str, str] = {}
    for part in name.split("+"):
        kind = next((kind for kind in KINDS if part in built_in(kind)), ADVANTAGE)
        if kind in chosen:
            raise PartError(
                f"{name}: {chosen[kind]} and {part} are both of the kind {kind}. Put a comma between two strategies."
            )
        chosen[kind] = part
    estimator = find_estimator(chosen.setdefault(ADVANTAGE, BASELINE))
    revision: Any = {} if "repair" in estimator.columns else None  # the rollouts hold what was revised
    return Named(name, build_strategies(**chosen, revision=revision))


def named_strategies(names: str) -> list[Named]:
    """The strategies of a list ``a,b,c`` or of ``all``, each once.

    Raises:
        PartError: as `named_strategy`.
    """
    asked = [name.strip() for name in names.split(",") if name.strip()]
    if names == "all":
        asked = [name for kind in KINDS for name in sorted(built_in(kind)) if name != DEFAULTS.get(kind)]
    return [named_strategy(name) for name in dict.fromkeys(asked)]


def replayable(asked: Sequence[Named], replay: Callable[[Strategies], Any]) -> tuple[list[Named], dict[str, str]]:
    """`BASELINE`, then those that ``replay`` takes on the first batch, and of the others name → why it does not; a
    `PartError` where it does not take `BASELINE`."""
    found: list[Named] = []
    absent: dict[str, str] = {}
    others = [each for each in asked if each.name != BASELINE]
    for named in [named_strategy(BASELINE), *others]:
        try:
            replay(named.parts)
            found.append(named)
        except PartError as error:
            if named.name == BASELINE:
                raise
            absent[named.name] = str(error)
    return found, absent
