"""Weighted sums of estimators: ``advantage: {name: mix, of: {grpo: 0.5, maxrl: 0.5}}``."""

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.contract import ADVANTAGE, Traits
from evenkeel.trainer.algorithms.registry import Strategy, find_strategy
from evenkeel.trainer.algorithms.results import checked_advantages

MIX = "mix"
_OF_THE_RESULT = ("group_size", "mask", "rewards")
"""Signals that are needed to check each part's result."""


class Mixture:
    """``A = Σ_k w_k A_k`` over ``parts`` and their ``weights``; (N, T) if any part credits tokens, else (N,)."""

    def __init__(self, parts: list[Strategy], weights: list[float]) -> None:
        self.parts, self.weights = parts, weights

    def __call__(self, **signals: Any) -> Tensor:
        rewards, shape = signals["rewards"], (signals["group_size"], signals["mask"].shape[1])
        made = [checked_advantages(part, part(signals), rewards, *shape, "in a mixture") for part in self.parts]
        if any(each.dim() == 2 for each in made):
            made = [each if each.dim() == 2 else each[:, None] for each in made]
        first, *others = (weight * each for weight, each in zip(self.weights, made, strict=True))
        return sum(others, start=first)


class StatefulMixture(Mixture):
    """A mixture with a part that has a state."""

    def state_dict(self) -> dict[int, Any]:
        """Index of a part that has a state → its state."""
        functions: list[Any] = [part.function for part in self.parts]
        return {place: functions[place].state_dict() for place, part in enumerate(self.parts) if part.has_state}

    def load_state_dict(self, state: Mapping[int, Any]) -> None:
        """Restore the state from `state_dict`."""
        for place, own in state.items():
            self.parts[place].function.load_state_dict(own)  # type: ignore[attr-defined]


def find_estimator(spec: Any) -> Strategy:
    """The estimator that ``spec`` names, or the mixture that it describes; it has not been tried yet.

    ``of`` maps names to weights, or to ``{weight: …, option: …}``. A mixture names the signals and columns of all its
    parts, and has the traits that any of them has; it cancels shared tokens where all of them do, and each part's dead
    groups are zeros unless that part trains them. Source of the form: SDPO (arXiv 2601.20802), Eq. 3.

    Raises:
        PartError: as `find_strategy`; or a mixture of nothing, of a mixture, or with weights that are not positive.
    """
    if not isinstance(spec, Mapping) or spec.get("name") != MIX:
        return find_strategy(ADVANTAGE, spec)
    of = spec.get("of")
    if {*spec} != {"name", "of"} or not isinstance(of, Mapping) or not of:
        what = (
            f"advantage 'mix': {dict(spec)!r:.120} adds nothing up. Write {{name: mix, of: {{grpo: 0.5, maxrl: 0.5}}}}."
        )
        raise PartError(what, code="mixture-of-nothing")
    parts, weights = [], []
    for name, given in of.items():
        options = dict(given) if isinstance(given, Mapping) else {"weight": given}
        weight = options.pop("weight", None)
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if name == MIX or not is_number or not 0 < weight < math.inf:
            what = f"advantage 'mix': {name}: {given!r:.80} is no weight above 0 of an estimator."
            raise PartError(
                f"{what} Write name: weight, or name: {{weight: …, option: …}}.", code="weight-of-a-mixture"
            )
        parts.append(find_strategy(ADVANTAGE, {"name": name, **options}))
        weights.append(float(weight))
    kind = StatefulMixture if any(part.has_state for part in parts) else Mixture
    return Strategy(
        kind=ADVANTAGE,
        name=" + ".join(f"{weight:g} {part.name}" for part, weight in zip(parts, weights, strict=True)),
        function=kind(parts, weights),
        options={},
        signals=frozenset(_OF_THE_RESULT).union(*(part.signals for part in parts)),
        columns=tuple(sorted({column for part in parts for column in part.columns})),
        traits=_together([part.traits for part in parts]),
    )


def _together(traits: list[Traits]) -> Traits:
    cancels = [each.cancels_shared_tokens for each in traits]
    return Traits(
        trains_dead_groups=any(each.trains_dead_groups for each in traits),
        needs_whole_groups=max((each.needs_whole_groups for each in traits), key=(None, "step", "forward").index),
        cancels_shared_tokens="classes" if all(cancels) and "classes" in cancels else all(cancels),
        needs_equal_sequence_weights=any(each.needs_equal_sequence_weights for each in traits),
        depends_on_other_groups=any(each.depends_on_other_groups for each in traits),
        draws_at_random=any(each.draws_at_random for each in traits),
    )
