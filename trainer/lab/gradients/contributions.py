"""Contributions: the factors of ``∇ log π`` of each token, in a strategy's first update on a rollout batch."""

from dataclasses import dataclass

import torch
from torch import Tensor

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms import update
from evenkeel.trainer.algorithms.contract import TURN_COLUMNS
from evenkeel.trainer.algorithms.row_draws import row_keys
from evenkeel.trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN, loss_sequence_weights
from evenkeel.trainer.algorithms.signals import estimator_signals, token_signals
from evenkeel.trainer.algorithms.strategies import TAUGHT, Strategies

WHERE = "on a replayed batch"
COEFFICIENT_LOSS = "cispo"
"""The loss in which a coefficient replaces the clipped ratio."""


@dataclass(frozen=True)
class Recipe:
    """The settings of a run, other than its strategies, that determine its gradients.

    Attributes:
        reward_weights: reward's label → weight.
        longest: ``max_completion_length``, which dr_grpo divides by.
        clip: lowest and highest ratio of a token; ``None`` where not each is clipped by itself.
    """

    group_size: int
    temperature: float
    reward_weights: dict[str, float]
    max_steps: int
    loss_type: str
    longest: int
    learning_rate: float = 0.0
    clip: tuple[float, float] | None = None

    def loss_of(self, strategies: Strategies) -> str:
        """The loss that they are trained with."""
        return COEFFICIENT_LOSS if strategies.coefficient else self.loss_type


@dataclass(frozen=True)
class ReplayedBatch:
    """A rollout batch as strategies see it; N rows, those of a group consecutive, T tokens, F reward functions.

    Attributes:
        rewards, correct: (N,), NaN = unscored.
        rewards_per_function, reward_weights: (N, F), (F,).
        prompt_ids: of each group.
        completion_ids, mask: (N, T) int.
        logps, entropies: (N, T) of the policy whose gradient is taken: π_old is π.
        sum_pi_squared: (N, T), of the same policy.
        columns: name → (N,), other numbers that reward functions logged; (N, K) for `TURN_COLUMNS`.
    """

    rewards: Tensor
    correct: Tensor
    rewards_per_function: Tensor
    reward_weights: Tensor
    prompt_ids: list[list[int]]
    completion_ids: Tensor
    mask: Tensor
    logps: Tensor
    entropies: Tensor
    group_size: int
    step: int
    max_steps: int
    columns: dict[str, Tensor]
    sum_pi_squared: Tensor | None = None


def passes(strategies: Strategies, batch: ReplayedBatch, recipe: Recipe) -> list[Tensor]:
    """(N, T) for each pass of the update schedule: ``k_i · A_{i,t} · w_{i,t} · c_{i,t}`` on the pass's tokens.

    ``k_i`` is `loss_scale`. At ρ = 1 every TRL loss has the gradient ``A ∇ log π`` and clips nothing. A coefficient is
    evaluated at log ρ = 0, in `COEFFICIENT_LOSS`. The passes add up to the joint update.

    Raises:
        PartError: a strategy asks for a signal that was not recorded, or breaks its contract.
    """
    for part in strategies.all:
        for signal in [each for each in TAUGHT if each in part.signals]:
            raise PartError(f"{part.kind} {part.name!r} asks for {signal}, which rollouts do not record.")
    advantages = batch_advantages(strategies, batch, recipe)
    signals = token_signals(
        logps=batch.logps,
        old_logps=batch.logps,
        teacher_logps=None,
        teacher_contrast=None,
        advantages=advantages,
        mask=batch.mask,
        entropies=batch.entropies,
        completion_ids=batch.completion_ids,
        groups=torch.arange(len(batch.mask)) // batch.group_size,
        scored=~batch.rewards.isnan(),
        row_keys=row_keys(len(batch.mask), 0, batch.step),
        step=batch.step,
        max_steps=batch.max_steps,
    )
    factors = update.token_factors(strategies, signals, WHERE)
    scale = loss_scale(batch.mask, recipe.loss_of(strategies), recipe.longest)
    contributions = advantages * scale[:, None] * batch.mask
    contributions = factors.weighted(contributions)
    if factors.coefficients is not None:
        contributions = contributions * factors.coefficients
    schedule, probs, keys = strategies.schedule, signals["probs"], signals["row_keys"]
    if schedule.num_passes == 1:
        return [contributions]
    return [contributions * schedule.kept(probs, batch.mask, index, keys) for index in range(schedule.num_passes)]


def loss_scale(mask: Tensor, loss_type: str, longest: int) -> Tensor:
    """(N,) factor of each trajectory in TRL's loss when the batch is one optimizer step.

    ``1 / (N L_i)`` for grpo and sapo, ``1 / Σ L`` for dapo, cispo and bnpo, ``1 / (N · longest)`` for dr_grpo,
    ``1 / N`` for luspo.

    Raises:
        PartError: vespo, whose weight depends on more than the batch.
    """
    lengths, rows = mask.sum(1).clamp(min=1).float(), len(mask)
    if loss_type in PER_SEQUENCE_MEAN:
        return 1 / (rows * lengths)
    if loss_type in ("dapo", "cispo", "bnpo"):
        return torch.full_like(lengths, 1 / float(mask.sum().clamp(min=1)))
    if loss_type in ("dr_grpo", "luspo"):
        return torch.full_like(lengths, 1 / (rows * (longest if loss_type == "dr_grpo" else 1)))
    raise PartError(f"trl.loss_type {loss_type!r} is not replayed. Write another, such as trl.loss_type=dapo.")


def true_gradient(batch: ReplayedBatch) -> Tensor:
    """(N, T): the contributions of the unbiased estimate of ``∇ p(correct)``.

    ``(c_i − mean of the others' c) / N`` on every token that the loss counts (leave-one-out); 0 where the row, or all
    others of its group, are unscored.
    """
    correct = batch.correct.view(-1, batch.group_size)
    scored = ~correct.isnan()
    known, count = correct.nan_to_num(nan=0.0), scored.sum(1, keepdim=True)
    others = (known.sum(1, keepdim=True) - known) / (count - 1).clamp(min=1)
    advantages = ((known - others) * scored * (count > 1)).flatten()
    return advantages[:, None] * batch.mask / scored.sum().clamp(min=1)


def batch_advantages(strategies: Strategies, batch: ReplayedBatch, recipe: Recipe) -> Tensor:
    """(N, T) advantages, as in the trainer."""
    loss_type = recipe.loss_of(strategies)
    estimator = strategies.advantage
    assert estimator is not None
    logged = (*estimator.columns, *(name for name in TURN_COLUMNS if name in estimator.signals))
    absent = [name for name in logged if name not in batch.columns]
    if absent:
        where = "rollouts do not record."
        if "repair" in absent:
            where = "runs with algorithm.revision record. Replay such a run."
        raise PartError(f"advantage {estimator.name!r} asks for {' and '.join(absent)}, which {where}")
    weighted = loss_type in PER_SEQUENCE_MEAN | ONE_DENOMINATOR
    signals = estimator_signals(
        rewards_per_function=batch.rewards_per_function,
        reward_weights=batch.reward_weights,
        group_size=batch.group_size,
        mask=batch.mask,
        completion_ids=batch.completion_ids,
        correct=batch.correct,
        old_logps=batch.logps,
        entropies=batch.entropies,
        sum_pi_squared=batch.sum_pi_squared,
        teacher_logps=None,
        teacher_contrast=None,
        sequence_weights=loss_sequence_weights(loss_type, batch.mask.sum(1)) if weighted else None,
        step=batch.step,
        max_steps=batch.max_steps,
        **dict.fromkeys(TURN_COLUMNS) | batch.columns,
    )
    signals.add(rewards=batch.rewards)  # as they were recorded
    made = update.advantages(strategies, signals, WHERE)
    return made if made.dim() == 2 else made[:, None].expand(batch.mask.shape)
