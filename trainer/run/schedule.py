"""What a run counts in optimizer steps: checkpoints, evaluations and its end lie between rollout batches.

`ARGUMENT_RULES` are asked of TRL's finished `GRPOConfig`, before a model is loaded.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainer.run.config.rules import Rule
from trainer.step.compatibility import PreflightError
from trainer.step.rollout import Schedule


def optimizer_steps_per_block(args: Any, num_passes: int = 1) -> int:
    """Optimizer steps from one boundary of a rollout batch to the next that is also the end of an optimizer step.

    A checkpoint is exact only at a multiple of this.

    Args:
        args: TRL's `GRPOConfig`.
        num_passes: of the update schedule.
    """
    schedule = Schedule.of(args, num_passes)
    return math.lcm(schedule.microbatches_per_rollout, schedule.accumulated) // schedule.accumulated


@dataclass(frozen=True)
class Arguments:
    """What a rule of `ARGUMENT_RULES` may ask: TRL's arguments, and the passes of the update schedule."""

    args: Any
    num_passes: int = 1

    @property
    def block(self) -> int:
        """See `optimizer_steps_per_block`."""
        return optimizer_steps_per_block(self.args, self.num_passes)

    @property
    def keeps_best(self) -> bool:
        return self.args.metric_for_best_model is not None

    def nearest(self, steps: float) -> int:
        """The multiple of a block that is nearest to a number of steps, one block at least."""
        return max(self.block, round(steps / self.block) * self.block)

    def block_in_words(self) -> str:
        args = self.args
        return (
            f"one rollout batch is trained for {self.block} optimizer steps "
            f"(steps_per_generation {args.steps_per_generation} × passes {args.num_iterations * self.num_passes} ÷ "
            f"gradient_accumulation_steps {args.gradient_accumulation_steps})"
        )


def check_arguments(args: Any, num_passes: int = 1) -> None:
    """Refuse arguments of TRL under which a run could not be resumed exactly, or would end inside a rollout batch.

    Raises:
        PreflightError: naming every rule of `ARGUMENT_RULES` that is broken, a paragraph each.
    """
    given = Arguments(args, num_passes)
    if found := [" ".join(rule.message(given)) for rule in ARGUMENT_RULES if rule.condition(given)]:
        raise PreflightError("\n\n".join(found))


def _rule(
    code: str,
    settings: str,
    about: str,
    condition: Callable[[Arguments], bool],
    message: Callable[[Arguments], tuple[str, str]],
) -> Rule:
    return Rule(code, tuple(settings.split()), "refuse", "arguments", condition, message, about)


def _not_resumable(name: str, reason: str) -> Rule:
    return _rule(
        name,
        f"trl.{name}",
        "Arguments under which an interrupted run could not be resumed exactly",
        lambda given: bool(getattr(given.args, name, False)),
        lambda given: (
            f"trl.{name} = true: {reason}, so an interrupted run could not go on as if nothing had happened.",
            f"Leave {name} out; to save disk space write save_total_limit: 1.",
        ),
    )


def _around(given: Arguments) -> str:
    below = given.args.max_steps // given.block * given.block
    return f"{f'{below} or ' if below else ''}{below + given.block}"


ARGUMENT_RULES = (
    _not_resumable("save_only_model", "checkpoints would hold no optimizer, learning rate and random state"),
    _not_resumable("ignore_data_skip", "a resumed run would begin with the first prompts again"),
    _not_resumable(
        "enable_jit_checkpoint", "it saves in the middle of a rollout batch; SIGTERM saves at its end here anyway"
    ),
    _rule(
        "checkpoint_inside_a_rollout_batch",
        "trl.save_steps",
        "Checkpoints in the middle of a rollout batch",
        lambda given: given.args.save_strategy == "steps" and given.block > 1 and given.args.save_steps % given.block,
        lambda given: (
            f"trl.save_steps = {given.args.save_steps}, but {given.block_in_words()}. A checkpoint between them loses "
            "the batch, and resuming would train the same prompts again.",
            f"Write save_steps: {given.nearest(given.args.save_steps)}.",
        ),
    ),
    _rule(
        "end_inside_a_rollout_batch",
        "trl.max_steps",
        "A run whose last rollout batch is generated and then trained in part",
        lambda given: given.args.max_steps > 0 and given.args.max_steps % given.block,
        lambda given: (
            f"trl.max_steps = {given.args.max_steps}, but {given.block_in_words()}. The last rollout batch would be "
            f"generated, scored and trained for {given.args.max_steps % given.block} of its {given.block} steps.",
            f"Write max_steps: {_around(given)}.",
        ),
    ),
    _rule(
        "learning_rate_follows_the_evaluation",
        "trl.lr_scheduler_type",
        "A learning rate that follows the loss on held-out rows",
        lambda given: given.args.lr_scheduler_type in ("reduce_lr_on_plateau", "greedy"),
        lambda given: (
            f"trl.lr_scheduler_type = {given.args.lr_scheduler_type.value!r} follows the loss on held-out rows, and "
            "answers that a verifier scores have none.",
            "Write constant_with_warmup, linear or cosine.",
        ),
    ),
    _rule(
        "best_checkpoint_inside_a_rollout_batch",
        "evaluation.every_steps evaluation.keep_best",
        "Best checkpoints in the middle of a rollout batch",
        lambda given: given.keeps_best and given.args.eval_steps % given.block,
        lambda given: (
            f"evaluation.every_steps = {given.args.eval_steps} with keep_best, but one rollout batch is trained for "
            f"{given.block} optimizer steps: a checkpoint between them loses the batch, and resuming from it would "
            "train the same prompts again.",
            f"Write every_steps: {given.nearest(given.args.eval_steps)}.",
        ),
    ),
    _rule(
        "best_checkpoint_without_saving",
        "evaluation.keep_best trl.save_strategy",
        "The best checkpoint, where none is saved",
        lambda given: given.keeps_best and given.args.save_strategy == "no",
        lambda given: (
            "evaluation.keep_best with trl.save_strategy 'no': no checkpoint is saved, so none can be kept.",
            "Leave save_strategy out, or write best to save no others.",
        ),
    ),
    _rule(
        "best_checkpoint_alone",
        "evaluation.keep_best trl.save_total_limit",
        "The best checkpoint in the place of the last",
        lambda given: given.keeps_best and given.args.save_total_limit == 1,
        lambda given: (
            "evaluation.keep_best with trl.save_total_limit = 1: the one that is kept would be the best, and the run "
            "could not go on from its last.",
            "Write save_total_limit: 2.",
        ),
    ),
)
"""What is refused of TRL's arguments in a run, which must be resumable; the drop-in takes what TRL takes."""
