"""What strategies return is checked on every batch: one NaN or negative weight can ruin a run without a word."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.groups import dead_groups
from evenkeel.trainer.algorithms.registry import Strategy

Suspect = Callable[[Tensor, Callable[[], PartError]], None]
"""Takes where a result is bad, bool of any shape, and makes of it the error to raise, now or when it is convenient."""


def raised_at_once(bad: Tensor, error: Callable[[], PartError]) -> None:
    """Raise ``error`` where anything is bad; waits for the device."""
    if bool(bad.any()):
        raise error()


def checked_advantages(
    strategy: Strategy, result: object, rewards: Tensor, group_size: int, num_tokens: int, where: str
) -> Tensor:
    """``result`` of an estimator, (N,) or (N, T), with exact zeros in groups that have nothing to teach.

    Zeros, because the float noise of such a group, divided by its std under a fresh Adam, moves weights by a full
    learning rate; an estimator with the trait ``trains_dead_groups`` is left as it is.

    Args:
        where: for the message, e.g. ``at optimizer step 12``.

    Raises:
        PartError: no tensor of that shape, a judged row that is NaN or infinite, or an unjudged row that is not NaN.
    """
    shapes = ((len(rewards),), (len(rewards), num_tokens))
    result = _shaped(strategy, result, shapes, where)
    unjudged, expand = rewards.isnan(), (slice(None), *[None] * (result.dim() - 1))
    if not strategy.traits.trains_dead_groups:
        result = result.masked_fill((dead_groups(rewards, group_size) & ~unjudged)[expand], 0.0)
    rows = result if result.dim() == 2 else result[:, None]
    if bool((bad := rows.isinf().any(1) & ~unjudged).any()):
        raise PartError(
            f"{_broken(strategy, where)}: an advantage is infinite ({_rows(bad, rewards)}). Guard the division."
        )
    if bool((bad := rows.isnan().any(1) != unjudged).any()):
        raise PartError(
            f"{_broken(strategy, where)}: NaN marks an unscored response, and must come out as NaN for it and no "
            f"other ({_rows(bad, rewards)}). Use nanmean, and leave NaN rows out of every sum."
        )
    return result


def checked_token_weights(
    strategy: Strategy, result: object, mask: Tensor, where: str, suspect: Suspect = raised_at_once
) -> Tensor:
    """``result`` of a token weight, (B, T), finite and ≥ 0 wherever ``mask`` counts.

    Raises:
        PartError: no tensor of the shape of ``mask``, or, by ``suspect``, a weight that is negative or not finite.
    """
    tensor = _shaped(strategy, result, [tuple(mask.shape)], where)
    bad = mask.bool() & ~(tensor.isfinite() & (tensor >= 0))

    def error() -> PartError:
        return PartError(
            f"{_broken(strategy, where)}: a weight is negative or not finite ({_values(tensor, bad)}). Clamp it at 0; "
            "signs are an estimator's."
        )

    suspect(bad, error)
    return tensor.masked_fill(~mask.bool(), 0.0)


def checked_coefficients(
    strategy: Strategy, result: object, mask: Tensor, where: str, suspect: Suspect = raised_at_once
) -> Tensor:
    """``result`` of a coefficient, (B, T) or (B, 1), finite wherever ``mask`` counts.

    Raises:
        PartError: no tensor of such a shape, or, by ``suspect``, a value that is not finite.
    """
    tensor = _shaped(strategy, result, [tuple(mask.shape), (len(mask), 1)], where).expand(mask.shape)
    bad = mask.bool() & ~tensor.isfinite()

    def error() -> PartError:
        return PartError(
            f"{_broken(strategy, where)}: a coefficient is not finite ({_values(tensor, bad)}). Compute in log "
            "space, or clamp the ratio."
        )

    suspect(bad, error)
    return tensor.masked_fill(~mask.bool(), 0.0)


def checked_prompts(strategy: Strategy, result: object, count: int, num_prompts: int, where: str) -> list[int]:
    """``result`` of a prompt sampler: ``count`` different positions in the training data.

    Raises:
        PartError: other things than that.
    """
    prompts = [prompt for prompt in result if type(prompt) is int] if isinstance(result, list) else []
    if len({prompt for prompt in prompts if 0 <= prompt < num_prompts}) != count or result != prompts:
        raise PartError(
            f"{_broken(strategy, where)}: asked for {count} of {num_prompts} prompts it returned {result!r:.80}. "
            f"Return a list of {count} different integers from 0 to {num_prompts - 1}."
        )
    return prompts


def max_rounds(sampler: Strategy) -> int:
    """How often a prompt sampler lets a rollout batch be generated until it is full of groups with a gradient.

    Raises:
        PartError: no number of rounds.
    """
    rounds = getattr(sampler.function, "max_rounds", 1)
    if type(rounds) is not int or rounds < 1:
        raise PartError(
            f"{sampler.kind} {sampler.name!r}: max_rounds = {rounds!r} is not a number of rounds, 1 or more."
        )
    return rounds


def _shaped(strategy: Strategy, result: object, shapes: Sequence[tuple[int, ...]], where: str) -> Tensor:
    """``result`` as a constant of the update, of one of the ``shapes``."""
    if isinstance(result, Tensor) and tuple(result.shape) in shapes:
        return result.detach()
    found = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
    raise PartError(
        f"{_broken(strategy, where)}: it returned {found}. Return a tensor of shape {' or '.join(map(str, shapes))}."
    )


def _broken(strategy: Strategy, where: str) -> str:
    return f"{strategy.kind} {strategy.name!r} breaks its contract {where}"


def _rows(bad: Tensor, rewards: Tensor) -> str:
    rows = bad.nonzero().flatten()[:3].tolist()
    return f"{int(bad.sum())} of {len(bad)} responses, e.g. " + ", ".join(
        f"response {row} with reward {rewards[row].item():g}" for row in rows
    )


def _values(tensor: Tensor, bad: Tensor) -> str:
    row, token = bad.nonzero()[0].tolist()
    share = f"{int(bad.sum())} of {bad.numel()} tokens"
    return f"{share}, e.g. {torch.as_tensor(tensor[row, token]).item():g} at row {row}, token {token}"
