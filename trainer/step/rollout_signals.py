"""What an advantage estimator may see of a rollout batch, gathered over all ranks when it asks."""

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from trl.models.utils import disable_gradient_checkpointing

from rewards.registry import PartError, nearest
from trainer.algorithms.contract import ADVANTAGE, SIGNALS, UpdateSchedule
from trainer.algorithms.registry import Strategy
from trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN, loss_sequence_weights
from trainer.step.signals import Signals

if TYPE_CHECKING:
    from trainer.step.rlvr_trainer import RLVRTrainer

Batch = dict[str, Any]
_IMAGES = (
    "pixel_values",
    "image_grid_thw",
    "num_images",
    "pixel_attention_mask",
    "spatial_shapes",
    "num_tiles",
    "image_sizes",
    "token_type_ids",
    "mm_token_type_ids",
    "image_position_ids",
)
"""What TRL's batches hold beside the tokens, and its scoring of tokens takes by the same names."""


def rollout_signals(
    trainer: "RLVRTrainer", batch: Batch, rewards_per_function: Tensor, columns: dict[str, list[Any]]
) -> Signals:
    """The signals of all ranks' completions of one rollout batch.

    Args:
        rewards_per_function: (N, F) of all ranks.
        columns: what this rank's reward functions logged, name → one value a completion.
    """
    mask = gathered_tokens(trainer, loss_mask(batch), 0)
    others = {name: values for name, values in columns.items() if name not in SIGNALS[ADVANTAGE]}
    return Signals(
        rewards=lambda: weighted_sum(rewards_per_function, trainer.reward_weights),
        group_size=trainer.num_generations,
        rewards_per_function=rewards_per_function,
        reward_weights=trainer.reward_weights.to(rewards_per_function.device),
        correct=lambda: _gathered_verdicts(trainer, columns, len(batch["completion_ids"])),
        lengths=lambda: mask.sum(1),
        completion_ids=lambda: gathered_tokens(trainer, batch["completion_ids"], trainer._tokenizer.pad_token_id),
        mask=mask,
        old_logps=lambda: gathered_tokens(trainer, old_score(trainer, batch, "old_per_token_logps"), 0),
        entropies=lambda: gathered_tokens(trainer, old_score(trainer, batch, "old_entropies"), 0),
        sequence_weights=lambda: _sequence_weights(trainer, batch, mask),
        step=trainer.state.global_step,
        max_steps=trainer.state.max_steps,
        **{name: partial(_column, trainer, name, values) for name, values in others.items()},
    )


def check_columns(trainer: "RLVRTrainer", estimator: Strategy, signals: Signals) -> None:
    """Refuse an estimator that asks for what no reward function logged.

    Raises:
        PartError: naming the columns that there are.
    """
    for name in (*estimator.columns, *(["correct"] if "correct" in estimator.signals else [])):
        absent = signals["correct"] is None if name == "correct" else trainer.any_rank(name not in signals)
        if absent:
            left = ", ".join(key for key in signals if key not in SIGNALS[ADVANTAGE]) or "none"
            raise PartError(
                f"advantage {estimator.name!r} asks for the column {name!r}, but no reward function logged it for "
                f"every completion; columns that were: {left}.{nearest(name, SIGNALS[ADVANTAGE])} "
                f"Log one number a row: log_extra({name!r}, values)."
            )


def loss_mask(batch: Batch) -> Tensor:
    """Tokens that the loss counts, (B, T)."""
    mask: Tensor = batch["completion_mask"]
    return mask * batch["tool_mask"] if "tool_mask" in batch else mask


def kept_tokens(schedule: UpdateSchedule, batch: Batch, pass_index: int) -> Tensor:
    """Tokens of a micro-batch that a pass trains, (B, T) bool."""
    return schedule.kept(batch["old_per_token_logps"].exp(), loss_mask(batch), pass_index, batch["row_keys"])


def gathered_tokens(trainer: "RLVRTrainer", tokens: Tensor, padding: int) -> Tensor:
    """(B, T) of this rank → (N, longest T) of all."""
    padded = trainer.accelerator.pad_across_processes(tokens, dim=1, pad_index=padding)
    gathered: Tensor = trainer.accelerator.gather(padded)
    return gathered


def old_score(trainer: "RLVRTrainer", batch: Batch, name: str) -> Tensor:
    """``log π_old`` or its entropy of this rank's tokens: TRL's own, or of one pass more where it made none."""
    if name not in batch and "scores" not in batch:
        kwargs = trainer.args.gradient_checkpointing_kwargs
        with torch.no_grad(), disable_gradient_checkpointing(trainer.model, kwargs):
            logps, entropies, _ = trainer._get_per_token_logps_and_entropies(
                trainer.model,
                torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
                torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
                batch["completion_ids"].shape[1],
                batch_size=trainer.args.per_device_train_batch_size,
                compute_entropy=True,
                **{key: batch[key] for key in _IMAGES if key in batch},
            )
        batch["scores"] = {"old_per_token_logps": logps, "old_entropies": entropies}
    score: Tensor = batch[name] if name in batch else batch["scores"][name]
    return score


def weighted_sum(rewards_per_function: Tensor, reward_weights: Tensor) -> Tensor:
    """Rewards (N,) of (N, F); NaN where no function judged the completion."""
    weighted = rewards_per_function * reward_weights.to(rewards_per_function.device).unsqueeze(0)
    return weighted.nansum(dim=1).masked_fill(rewards_per_function.isnan().all(dim=1), torch.nan)


def verdicts(columns: dict[str, list[Any]]) -> Tensor | None:
    """The column ``correct`` as 1, 0, NaN; ``None`` where there is none, or it holds something else than verdicts."""
    values = columns.get("correct", [])
    if not values or not all(value is None or (isinstance(value, float | int) and value in (0, 1)) for value in values):
        return None
    return torch.tensor([torch.nan if value is None else float(value) for value in values])


def _gathered_verdicts(trainer: "RLVRTrainer", columns: dict[str, list[Any]], rows: int) -> Tensor | None:
    """`verdicts` of all ranks (N,), ``None`` where one of them has none; every rank makes the same call."""
    local = verdicts(columns)
    values = torch.full((rows,), torch.nan) if local is None else local
    flagged = torch.cat([torch.tensor([float(local is not None)]), values]).to(trainer.accelerator.device)
    gathered: Tensor = trainer.accelerator.gather(flagged).view(-1, rows + 1)
    return gathered[:, 1:].flatten() if bool(gathered[:, 0].all()) else None


def _column(trainer: "RLVRTrainer", name: str, values: list[Any]) -> Tensor:
    for value in values:
        if value is not None and not isinstance(value, float | int):
            raise PartError(
                f"The estimator asks for the column {name!r}, but a reward function logged {value!r:.60} there, of "
                f"type {type(value).__name__}. Log numbers, or None where there is none."
            )
    numbers = torch.tensor([torch.nan if value is None else float(value) for value in values])
    gathered: Tensor = trainer.accelerator.gather(numbers.to(trainer.accelerator.device))
    return gathered


def _sequence_weights(trainer: "RLVRTrainer", batch: Batch, mask: Tensor) -> Tensor | None:
    """What the configured loss multiplies each trajectory by (N,); ``None`` where it is not known beforehand."""
    if trainer.loss_type not in PER_SEQUENCE_MEAN | ONE_DENOMINATOR:
        return None
    ratio = None
    by_sequence = trainer.vllm_importance_sampling_mode.startswith("sequence")
    if by_sequence and trainer.skips_old_logps:
        return None  # a factor of them is known when the loss is computed
    if by_sequence and "importance_sampling_ratio" in batch:
        ratio = trainer.accelerator.gather(batch["importance_sampling_ratio"].squeeze(1))
    return loss_sequence_weights(trainer.loss_type, mask.sum(1), ratio)
