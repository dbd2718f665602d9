"""Checks of strategies' results, on every batch: one NaN or negative weight can silently ruin a run."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.contract import TOKEN_WEIGHT
from evenkeel.trainer.algorithms.groups import dead_groups
from evenkeel.trainer.algorithms.registry import Strategy

Suspect = Callable[[Tensor, Callable[[], PartError]], None]
"""Called with the places where a result is bad, bool of any shape, and the error to raise if any is, now or later."""


def raised_at_once(bad: Tensor, error: Callable[[], PartError]) -> None:
    """Raise ``error`` where anything is bad; waits for the device."""
    if bool(bad.any()):
        raise error()


def checked_advantages(
    strategy: Strategy, result: object, rewards: Tensor, group_size: int, num_tokens: int, where: str
) -> Tensor:
    """``result`` of an estimator, (N,) or (N, T), with exact zeros in dead groups.

    Zeros, because the float noise of such a group, divided by its std under a fresh Adam, moves weights by a full
    learning rate; results of an estimator with the trait ``trains_dead_groups`` are not changed.

    Args:
        where: for the message, e.g. ``at optimizer step 12``.

    Raises:
        PartError: not a tensor of that shape, a scored row that is NaN or infinite, or an unscored row that is not NaN.
    """
    result = _shaped(strategy, result, [(len(rewards),), (len(rewards), num_tokens)], where)
    unscored, expand = rewards.isnan(), (slice(None), *[None] * (result.dim() - 1))
    if not strategy.traits.trains_dead_groups:
        result = result.masked_fill((dead_groups(rewards, group_size) & ~unscored)[expand], 0.0)
    rows = result if result.dim() == 2 else result[:, None]
    bad = torch.where(unscored, ~rows.isnan().any(1), ~rows.isfinite().all(1))
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        value = rows[row][~rows[row].isfinite()][:1].tolist() or rows[row][:1].tolist()
        raise PartError(
            f"{_broken(strategy, where)}: response {row} with reward {rewards[row].item():g} has the advantage "
            f"{value[0]:g}. Return NaN for unscored responses (reward NaN), finite numbers for all others."
        )
    return result


def checked_factors(
    strategy: Strategy, result: object, mask: Tensor, where: str, suspect: Suspect = raised_at_once
) -> Tensor:
    """``result`` of a token weight or coefficient, (B, T): finite wherever ``mask`` counts, and set to 0 elsewhere.

    A weight is not negative: an estimator decides signs. A coefficient may be (B, 1).

    Raises:
        PartError: not a tensor of such a shape; by ``suspect``, a value that is not allowed.
    """
    is_weight = strategy.kind == TOKEN_WEIGHT
    shapes = [tuple(mask.shape)] if is_weight else [tuple(mask.shape), (len(mask), 1)]
    tensor = _shaped(strategy, result, shapes, where).expand(mask.shape)
    good = tensor.isfinite() & (tensor >= 0) if is_weight else tensor.isfinite()
    bad = mask.bool() & ~good

    def error() -> PartError:
        row, token = bad.nonzero()[0].tolist()
        value = float(tensor[row, token])
        wanted = "finite numbers from 0 on" if is_weight else "finite numbers"
        return PartError(f"{_broken(strategy, where)}: {value:g} at row {row}, token {token}. Return {wanted}.")

    suspect(bad, error)
    return tensor.masked_fill(~mask.bool(), 0.0)


def checked_prompts(strategy: Strategy, result: object, count: int, num_prompts: int, where: str) -> list[int]:
    """``result`` of a prompt sampler: ``count`` different positions in the training data.

    Raises:
        PartError: anything else.
    """
    prompts = [prompt for prompt in result if type(prompt) is int] if isinstance(result, list) else []
    if len({prompt for prompt in prompts if 0 <= prompt < num_prompts}) != count or result != prompts:
        raise PartError(
            f"{_broken(strategy, where)}: it returned {result!r:.80}. Return a list of {count} different integers from "
            f"0 to {num_prompts - 1}."
        )
    return prompts


def max_rounds(sampler: Strategy) -> int:
    """Largest number of generations with which a prompt sampler fills a rollout batch with groups with a gradient."""
    return int(getattr(sampler.function, "max_rounds", 1))


def _shaped(strategy: Strategy, result: object, shapes: Sequence[tuple[int, ...]], where: str) -> Tensor:
    """``result``, detached, if it is a tensor of one of the ``shapes``."""
    if isinstance(result, Tensor) and tuple(result.shape) in shapes:
        return result.detach()
    found = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
    raise PartError(
        f"{_broken(strategy, where)}: it returned {found}. Return a tensor {' or '.join(map(str, shapes))}."
    )


def _broken(strategy: Strategy, where: str) -> str:
    return f"{strategy.kind} {strategy.name!r} breaks its contract {where}"
