"""Each strategy is tried on a tiny example when it is built: what breaks its contract is refused."""

import io
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rewards.registry import PartError
from trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, TOKEN_WEIGHT, UpdateSchedule
from trainer.algorithms.registry import Strategy
from trainer.algorithms.results import (
    checked_advantages,
    checked_coefficients,
    checked_prompts,
    checked_token_weights,
    max_rounds,
)
from trainer.algorithms.row_draws import row_keys

GROUP_SIZE, NUM_TOKENS = 4, 6
WHERE = "on a tiny example"


def tiny_example() -> dict[str, Any]:
    """Three groups of four responses of up to six tokens: one mixed with an unjudged row, one dead, one mixed.

    All signals of all kinds; the rows of a forward pass are those of the whole batch.
    """
    nan = float("nan")
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor([6, 3, 4, 5, 2, 6, 6, 1, 3, 3, 5, 6])
    mask = (torch.arange(NUM_TOKENS) < lengths[:, None]).long()
    rewards = torch.tensor([1.0, 0.0, nan, 1.0, 0.7, 0.7, 0.7, 0.7, 0.0, 1.0, 0.0, 0.0])
    probs = torch.rand(mask.shape, generator=generator).clamp(0.05, 0.95)
    log_ratio = 0.3 * torch.randn(mask.shape, generator=generator)
    old_logps = probs.log()
    judged = ~rewards.isnan()
    per_function = torch.stack([rewards, 1.0 - rewards], dim=1)
    return {
        "rewards": rewards,
        "group_size": GROUP_SIZE,
        "rewards_per_function": per_function,
        "reward_weights": torch.tensor([1.0, 0.0]),
        "correct": rewards.where(rewards.isnan(), (rewards == 1.0).float()),
        "lengths": lengths,
        "completion_ids": torch.randint(1, 4, mask.shape, generator=generator) * mask,
        "mask": mask,
        "sequence_weights": torch.ones(len(rewards)),
        "probs": probs,
        "old_logps": old_logps,
        "logps": old_logps + log_ratio,
        "log_ratio": log_ratio,
        "entropies": -(probs * old_logps + (1 - probs) * (1 - probs).log()),
        "advantages": (judged * torch.randn(len(rewards), generator=generator))[:, None].expand(mask.shape),
        "groups": torch.arange(len(rewards)) // GROUP_SIZE,
        "judged": judged,
        "row_keys": row_keys(len(rewards), 0),
        "repair": torch.linspace(0, 1, len(rewards)),
        "edited": torch.rand(mask.shape, generator=generator) < 0.5,
        "step": 0,
        "max_steps": 10,
    }


def tried(strategy: Strategy) -> Strategy:
    """``strategy`` once it has kept its contract on the tiny example; an estimator's (N, T) is noted as a trait.

    Raises:
        PartError: it fails there, or what it returns breaks the contract.
    """
    kept, strategy = strategy, replace(strategy, function=deepcopy(strategy.function))  # what it learns is forgotten
    signals = tiny_example()
    signals |= {column: torch.zeros(len(signals["rewards"])) for column in strategy.columns if column not in signals}
    result = _called(strategy, signals)
    if strategy.has_state:
        _check_state(strategy)
    mask: Tensor = signals["mask"]
    if strategy.kind == ADVANTAGE:
        checked_advantages(strategy, result, signals["rewards"], GROUP_SIZE, NUM_TOKENS, WHERE)
        return replace(kept, token_level=isinstance(result, Tensor) and result.dim() == 2)
    if strategy.kind == TOKEN_WEIGHT:
        weights = checked_token_weights(strategy, result, mask, WHERE)
        cut = strategy.traits.depends_on_the_cut or not _same_for_half(strategy, signals, weights)
        return replace(kept, traits=replace(kept.traits, depends_on_the_cut=cut))
    if strategy.kind == COEFFICIENT:
        checked_coefficients(strategy, result, mask, WHERE)
    return kept


def _check_state(strategy: Strategy) -> None:
    """Refuse a state that could not be read back when a run is resumed."""
    function: Any = strategy.function
    try:
        buffer = io.BytesIO()
        torch.save(function.state_dict(), buffer)
        buffer.seek(0)
        function.load_state_dict(torch.load(buffer, weights_only=True))
    except Exception as error:
        raise PartError(
            f"{strategy.kind} {strategy.name!r}: its state cannot be saved and read back: {type(error).__name__}: "
            f"{str(error).splitlines()[0]:.200}. Keep tensors, numbers, texts, lists and dictionaries in state_dict()."
        ) from error


def _same_for_half(strategy: Strategy, signals: dict[str, Any], weights: Tensor) -> bool:
    """Whether the first two groups get the same weights without the third: no function of the whole micro-batch."""
    rows = 2 * GROUP_SIZE
    half = {key: value[:rows] if isinstance(value, Tensor) and value.dim() else value for key, value in signals.items()}
    return torch.allclose(_called(strategy, half) * half["mask"], weights[:rows])


def separable(strategy: Strategy, rows: int, tokens: int = NUM_TOKENS) -> bool:
    """Whether a token weight or coefficient gives to each ``rows`` rows alone, cut after ``tokens`` tokens, the same.

    Whoever cuts micro-batches anew must know: by rows (1, or a whole group) and, where it shortens them, by tokens.
    """
    signals = tiny_example()
    before = strategy.function.state_dict() if strategy.has_state else None  # type: ignore[attr-defined]
    whole, mask = _called(strategy, signals).expand(signals["mask"].shape), signals["mask"]

    def part(value: Any, start: int) -> Any:
        if not isinstance(value, Tensor) or value.dim() == 0 or len(value) != len(mask):
            return value
        return value[start : start + rows, :tokens] if value.dim() == 2 else value[start : start + rows]

    same = True
    for start in range(0, len(mask), rows):
        alone = _called(strategy, {name: part(value, start) for name, value in signals.items()})
        same = same and torch.allclose(alone * part(mask, start), part(whole * mask, start))
    if before is not None:
        strategy.function.load_state_dict(before)  # type: ignore[attr-defined]
    return same


def tried_schedule(strategy: Strategy) -> UpdateSchedule:
    """The schedule that ``strategy`` makes of its options, once its passes have partitioned the tiny example.

    Raises:
        PartError: it makes no schedule, fails on the example, or trains a token twice, never, or though it is masked.
    """
    schedule = _called(strategy, {})
    num_passes = getattr(schedule, "num_passes", None)
    name = f"{strategy.kind} {strategy.name!r}"
    if not isinstance(num_passes, int) or num_passes < 1 or not callable(getattr(schedule, "select", None)):
        raise PartError(
            f"{name} breaks its contract: it returned {schedule!r}. "
            "Return trainer.algorithms.contract.UpdateSchedule(num_passes, select)."
        )
    signals = tiny_example()
    probs, mask, keys = (signals[name] for name in ("probs", "mask", "row_keys"))
    try:
        kept = torch.stack([schedule.kept(probs, mask, index, keys).long() for index in range(num_passes)])
    except Exception as error:
        raise PartError(f"{name} failed {WHERE}: {type(error).__name__}: {error}") from error
    times = kept.sum(0)
    if bool((times != mask).any()):
        raise PartError(
            f"{name} breaks its contract: its {num_passes} passes train some token {int(times.max())} times or a "
            "masked one. Let select return, over all passes, every token of the mask exactly once."
        )
    return schedule


def tried_sampler(strategy: Strategy) -> Strategy:
    """``strategy`` once it has chosen prompts, been told what came of them, and kept its state.

    Raises:
        PartError: it is no class, fails, or what it chooses are not as many different prompts as it was asked for.
    """
    name = f"{strategy.kind} {strategy.name!r}"
    if not strategy.has_state:
        raise PartError(
            f"{name} is a function, so nothing says where it is and a resumed run would begin anew. Write a class with "
            "__call__(self, count, num_prompts, seed), state_dict and load_state_dict."
        )
    trial = replace(strategy, function=deepcopy(strategy.function))
    for _ in range(3):
        checked_prompts(trial, _called(trial, {"count": 4, "num_prompts": 6, "seed": 0}), 4, 6, WHERE)
        if observe := getattr(trial.function, "observe", None):
            observe(torch.tensor([0, 1, 2]), torch.tensor([1.0, 0.5, torch.nan]))
    _check_state(trial)
    max_rounds(strategy)
    return strategy


def _called(strategy: Strategy, signals: dict[str, Any]) -> Any:
    try:
        with torch.no_grad():
            return strategy(signals)
    except Exception as error:
        message = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise PartError(f"{strategy.kind} {strategy.name!r} failed {WHERE}: {message}") from error
