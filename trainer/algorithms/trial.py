"""Tries each strategy on a tiny example when it is built, and refuses one that breaks its contract.

A strategy that names ``step`` or ``max_steps`` is tried at the first step of a run, one in the middle and the last.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.contract import ADVANTAGE, TOKEN_WEIGHT, Traits, UpdateSchedule
from evenkeel.trainer.algorithms.registry import Strategy, built_in
from evenkeel.trainer.algorithms.results import checked_advantages, checked_factors, checked_prompts
from evenkeel.trainer.algorithms.row_draws import row_keys
from evenkeel.trainer.algorithms.signals import estimator_signals, token_signals

GROUP_SIZE, NUM_TOKENS = 4, 6
WHERE = "on a tiny example"
STEPS, MAX_STEPS = (0, 500, 999), 1000
"""Optimizer steps at which a strategy that names the step is tried, and the length of that run."""


def tiny_example(step: int = STEPS[0]) -> dict[str, Any]:
    """All signals at optimizer step ``step`` of three groups: one mixed with an unscored row, one dead, one mixed.

    Each has four responses of up to six tokens. The longest have two turns: a tool inserted their third token.
    """
    nan = float("nan")
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor([6, 3, 4, 5, 2, 6, 6, 1, 3, 3, 5, 6])
    written = (torch.arange(NUM_TOKENS) < lengths[:, None]).long()
    mask = written.clone()
    mask[lengths == NUM_TOKENS, 2] = 0
    rewards = torch.tensor([1.0, 0.0, nan, 1.0, 0.7, 0.7, 0.7, 0.7, 0.0, 1.0, 0.0, 0.0])
    probs = torch.rand(mask.shape, generator=generator).clamp(0.05, 0.95)
    log_ratio = 0.3 * torch.randn(mask.shape, generator=generator)
    old_logps = probs.log()
    scored = ~rewards.isnan()
    completion_ids = torch.randint(1, 4, mask.shape, generator=generator) * written
    advantages = scored * torch.randn(len(rewards), generator=generator)
    both = {"mask": mask, "completion_ids": completion_ids, "old_logps": old_logps}
    both |= {"teacher_logps": probs.flip(1).log(), "teacher_contrast": 0.1 * (probs - probs.flip(0))}
    both |= {"entropies": -(probs * old_logps + (1 - probs) * (1 - probs).log())}
    of_estimators = estimator_signals(
        rewards_per_function=torch.stack([rewards, 1.0 - rewards], dim=1),
        reward_weights=torch.tensor([1.0, 0.0]),
        group_size=GROUP_SIZE,
        correct=rewards.where(rewards.isnan(), (rewards == 1.0).float()),
        sum_pi_squared=probs**2 + (1 - probs) ** 2,
        sequence_weights=torch.ones(len(rewards)),
        turn_rewards=torch.stack([rewards.nan_to_num() / 2, torch.where(lengths == NUM_TOKENS, 0.25, nan)], dim=1),
        state_keys=torch.stack([torch.zeros_like(lengths), torch.where(lengths == NUM_TOKENS, 1, -1)], dim=1),
        repair=torch.linspace(0, 1, len(rewards)),
        edited=torch.rand(mask.shape, generator=generator) < 0.5,
        step=step,
        max_steps=MAX_STEPS,
        **both,
    )
    of_tokens = token_signals(
        logps=old_logps + log_ratio,
        advantages=advantages,
        groups=torch.arange(len(rewards)) // GROUP_SIZE,
        scored=scored,
        row_keys=row_keys(len(rewards), 0),
        step=step,
        max_steps=MAX_STEPS,
        **both,
    )
    return {**of_estimators, **of_tokens}


_FOUND: dict[tuple[str, str, str], tuple[bool, bool]] = {}
"""What trials found; one that ships has one trial, though a sweep builds it for each cell."""


def tried(strategy: Strategy) -> Strategy:
    """``strategy``, tried on the tiny example, with ``token_level`` and the trait ``depends_on_the_cut`` as seen there.

    Raises:
        PartError: it fails, its result breaks the contract, the same signals do not give the same result,
            or an estimator's advantages change with another group's rows without the trait for that.
    """
    spec = strategy.kind, strategy.name, str(strategy.options)
    found = _FOUND if built_in(strategy.kind).get(strategy.name) is strategy.function else {}
    if spec not in found:
        found[spec] = _trial(strategy)
    token_level, cut = found[spec]
    return replace(strategy, token_level=token_level, traits=replace(strategy.traits, depends_on_the_cut=cut))


def _trial(strategy: Strategy) -> tuple[bool, bool]:
    token_level, cut = strategy.token_level, strategy.traits.depends_on_the_cut
    for signals in _examples(strategy):
        # a copy, whose state after the trial is dropped
        part = _untouched(strategy)
        result = _checked(part, signals)
        _check_repeats(strategy, part, result, partial(_checked, signals=signals))
        if strategy.kind == ADVANTAGE:
            token_level = token_level or result.dim() == 2
            if not (strategy.traits.depends_on_other_groups or _same_in_parts(strategy, signals, GROUP_SIZE)):
                raise PartError(
                    f"{strategy.kind} {strategy.name!r} changes with another prompt's responses. A group's rows are "
                    "adjacent: write view(-1, group_size), or declare @traits(depends_on_other_groups=True)."
                )
        elif strategy.kind == TOKEN_WEIGHT:
            cut = cut or not _same_in_parts(strategy, signals, 2 * GROUP_SIZE)
    return token_level, cut


def separable(strategy: Strategy, rows: int) -> bool:
    """Whether a strategy's results for each ``rows`` rows (1, or a whole group) alone are those for all rows."""
    return all(_same_in_parts(strategy, signals, rows) for signals in _examples(strategy))


def _same_in_parts(strategy: Strategy, signals: dict[str, Any], rows: int) -> bool:
    def result(of: dict[str, Any]) -> Tensor:
        found = _checked(_untouched(strategy), of)
        return (found if found.dim() == 2 else found[:, None]) * of["mask"]

    def part(value: Any, start: int) -> Any:
        of_rows = isinstance(value, Tensor) and value.dim() > 0 and len(value) == len(whole)
        return value[start : start + rows] if of_rows else value

    whole, same = result(signals), True
    for start in range(0, len(whole), rows):
        alone = result({name: part(value, start) for name, value in signals.items()})
        same = same and torch.allclose(alone, part(whole, start), 1e-5, 1e-6, equal_nan=True)
    return same


def tried_schedule(strategy: Strategy) -> UpdateSchedule:
    """The schedule that ``strategy`` makes of its options, once its passes have partitioned the tiny example.

    Raises:
        PartError: it fails on the example, or trains a token twice, never, or although it is masked.
    """
    signals, name = tiny_example(), f"{strategy.kind} {strategy.name!r}"
    probs, mask, keys = (signals[name] for name in ("probs", "mask", "row_keys"))
    schedule: UpdateSchedule = _called(strategy, {})

    def all_passes() -> Tensor:
        passes = range(schedule.num_passes)
        return torch.stack([schedule.kept(probs, mask, index, keys).long() for index in passes])

    with _failures_named(strategy):
        kept, again = all_passes(), all_passes()
    if not torch.equal(kept.sum(0), mask):
        raise PartError(f"{name}: its passes do not train every token of the mask exactly once. Let select do that.")
    if not torch.equal(kept, again):
        raise PartError(f"{name} selected other tokens for the same pass. {_REPEAT}")
    return schedule


def tried_sampler(strategy: Strategy) -> Strategy:
    """``strategy`` once it has chosen prompts, observed their results, and saved its state.

    Raises:
        PartError: it is not a class, fails, or does not choose as many different prompts as asked.
    """
    if not strategy.has_state:
        raise PartError(
            f"{strategy.kind} {strategy.name!r} is a function: a resumed run would begin its walk again. Write a class "
            "with __call__(self, count, num_prompts, seed), state_dict and load_state_dict."
        )
    # no trait may excuse it: all processes must choose alike
    undeclared = replace(strategy, traits=Traits())

    def chosen(part: Strategy) -> list[list[int]]:
        prompts = []
        for _ in range(3):
            found = _called(part, {"count": 4, "num_prompts": 6, "seed": 0})
            prompts.append(checked_prompts(part, found, 4, 6, WHERE))
            if observe := getattr(part.function, "observe", None):
                observe(torch.tensor([0, 1, 2]), torch.tensor([1.0, 0.5, torch.nan]))
        return prompts

    trial = _untouched(strategy)
    _check_repeats(undeclared, trial, chosen(trial), chosen)
    return strategy


def _untouched(strategy: Strategy) -> Strategy:
    """A copy of ``strategy`` that does not share its state."""
    return replace(strategy, function=deepcopy(strategy.function))


def _examples(strategy: Strategy) -> Iterator[dict[str, Any]]:
    """The tiny example at each step at which ``strategy`` is tried, with a column of 0 for each that it names."""
    for step in STEPS if strategy.signals & {"step", "max_steps"} else STEPS[:1]:
        signals = tiny_example(step)
        yield dict.fromkeys(strategy.columns, torch.zeros(len(signals["rewards"]))) | signals


def _called(strategy: Strategy, signals: dict[str, Any]) -> Any:
    with _failures_named(strategy):
        return strategy(signals)


def _checked(strategy: Strategy, signals: dict[str, Any]) -> Tensor:
    result, where = _called(strategy, signals), f"{WHERE} at step {signals['step']} of {MAX_STEPS}"
    if strategy.kind == ADVANTAGE:
        return checked_advantages(strategy, result, signals["rewards"], GROUP_SIZE, NUM_TOKENS, where)
    return checked_factors(strategy, result, signals["mask"], where)


@contextmanager
def _failures_named(strategy: Strategy) -> Iterator[None]:
    """Turn exceptions raised inside into a `PartError` that names the strategy."""
    try:
        yield
    except PartError:
        raise
    except Exception as error:
        message = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise PartError(f"{strategy.kind} {strategy.name!r} failed {WHERE}: {message}") from error


_REPEAT = (
    "Draw from row_draws(row_keys, mask, seed), or declare @traits(draws_at_random=True). What is remembered belongs "
    "in a class with state_dict and load_state_dict."
)


def _check_repeats(strategy: Strategy, used: Strategy, first: Any, call: Callable[[Strategy], Any]) -> None:
    """Refuse a strategy whose result depends on more than its signals and the state that a checkpoint keeps.

    ``first`` is the result of ``call`` for ``used``, the first one for that copy.
    """
    resumed = _restored(strategy, used) if strategy.has_state else used
    if strategy.traits.draws_at_random:
        return
    if not (_equal(first, call(_untouched(strategy))) and _equal(call(used), call(resumed))):
        raise PartError(f"{strategy.kind} {strategy.name!r} returned other results for the same signals. {_REPEAT}")


def _equal(one: Any, other: Any) -> bool:
    if not isinstance(one, Tensor):
        return bool(one == other)
    return one.shape == other.shape and torch.allclose(one.double(), other.double(), 1e-6, 1e-9, equal_nan=True)


def _restored(strategy: Strategy, used: Strategy) -> Strategy:
    """``strategy`` with the state of ``used``, saved and loaded as in a resumed run."""
    restored, buffer = _untouched(strategy), io.BytesIO()
    with _failures_named(strategy):
        torch.save(used.function.state_dict(), buffer)  # type: ignore[attr-defined]
        buffer.seek(0)
        restored.function.load_state_dict(torch.load(buffer, weights_only=True))  # type: ignore[attr-defined]
    return restored
