"""What a run counts in optimizer steps: checkpoints, evaluations and its end lie between rollout batches.

``args`` are TRL's `GRPOConfig`, ``num_passes`` those of the update schedule.
"""

import math
from typing import Any

from trainer.step.compatibility import PreflightError
from trainer.step.rollout import Schedule


def optimizer_steps_per_block(args: Any, num_passes: int = 1) -> int:
    """Optimizer steps from one edge of a rollout batch to the next that is also the edge of an optimizer step.

    A checkpoint is exact only at a multiple of this.
    """
    schedule = Schedule.of(args, num_passes)
    return math.lcm(schedule.microbatches_per_rollout, schedule.accumulated) // schedule.accumulated


def check_save_steps(args: Any, num_passes: int = 1) -> None:
    """Refuse checkpoints in the middle of a rollout batch, from which training would repeat the same prompts.

    Raises:
        PreflightError: ``save_steps`` is not a multiple of the optimizer steps per rollout batch.
    """
    block = optimizer_steps_per_block(args, num_passes)
    if args.save_strategy != "steps" or block == 1 or args.save_steps % block == 0:
        return
    nearest = max(block, round(args.save_steps / block) * block)
    raise PreflightError(
        f"trl.save_steps = {args.save_steps}, but {_block_in_words(args, num_passes)}. A checkpoint between them loses "
        f"the batch, and resuming would train the same prompts again. Write save_steps: {nearest}."
    )


def check_max_steps(args: Any, num_passes: int = 1) -> None:
    """Refuse a run whose last rollout batch would be generated and then trained in part.

    Raises:
        PreflightError: ``max_steps`` is not a multiple of the optimizer steps per rollout batch.
    """
    block = optimizer_steps_per_block(args, num_passes)
    if args.max_steps <= 0 or args.max_steps % block == 0:
        return
    below = args.max_steps // block * block
    raise PreflightError(
        f"trl.max_steps = {args.max_steps}, but {_block_in_words(args, num_passes)}. The last rollout batch would be "
        f"generated, judged and trained for {args.max_steps - below} of its {block} steps. Write max_steps: "
        f"{f'{below} or ' if below else ''}{below + block}."
    )


def check_evaluation(args: Any, num_passes: int = 1) -> None:
    """Refuse to keep the best checkpoint where it would be inexact, not be saved, or cost the last one.

    Raises:
        PreflightError: evaluations in the middle of a rollout batch, ``save_strategy`` no, ``save_total_limit`` 1, or a
            learning rate that follows the evaluation's loss.
    """
    if args.lr_scheduler_type in ("reduce_lr_on_plateau", "greedy"):
        raise PreflightError(
            f"trl.lr_scheduler_type = {args.lr_scheduler_type.value!r} follows the loss on held-out rows, and answers "
            "that are judged have none. Write constant_with_warmup, linear or cosine."
        )
    if args.metric_for_best_model is None:
        return
    block = optimizer_steps_per_block(args, num_passes)
    if args.eval_steps % block:
        nearest = max(block, round(args.eval_steps / block) * block)
        raise PreflightError(
            f"evaluation.every_steps = {args.eval_steps} with keep_best, but one rollout batch is trained for {block} "
            "optimizer steps: a checkpoint between them loses the batch, and resuming from it would train the same "
            f"prompts again. Write every_steps: {nearest}."
        )
    if args.save_strategy == "no":
        raise PreflightError(
            "evaluation.keep_best with trl.save_strategy 'no': no checkpoint is saved, so none can be kept. Leave "
            "save_strategy out, or write best to save no others."
        )
    if args.save_total_limit == 1:
        raise PreflightError(
            "evaluation.keep_best with trl.save_total_limit = 1: the one that is kept would be the best, and the run "
            "could not go on from its last. Write save_total_limit: 2."
        )


def _block_in_words(args: Any, num_passes: int) -> str:
    return (
        f"one rollout batch is trained for {optimizer_steps_per_block(args, num_passes)} optimizer steps "
        f"(steps_per_generation {args.steps_per_generation} × passes {args.num_iterations * num_passes} ÷ "
        f"gradient_accumulation_steps {args.gradient_accumulation_steps})"
    )
