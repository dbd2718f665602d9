"""What a run counts in optimizer steps: checkpoints, evaluations and its end lie between rollout batches.

`ARGUMENT_RULES` are asked of TRL's finished `GRPOConfig`, before a model is loaded.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenkeel.trainer.run.config.rules import Problems, Rule, rule
from evenkeel.trainer.step.compatibility import PreflightError
from evenkeel.trainer.step.options import Schedule


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
    if found := [(each.code, " ".join(words)) for each in ARGUMENT_RULES for words in each.problems(given)]:
        raise PreflightError(*found)


ARGUMENT_RULES: list[Rule] = []
"""What is refused of TRL's arguments in a run, which must be resumable; the drop-in takes what TRL takes."""


def _rule(
    about: str, *settings: str, code: str = ""
) -> Callable[[Callable[[Any], Problems]], Callable[[Any], Problems]]:
    return rule(about, *settings, code=code, moment="arguments", table=ARGUMENT_RULES)


def _not_resumable(name: str, reason: str) -> None:
    about = "Arguments under which an interrupted run could not be resumed exactly"

    @_rule(about, f"trl.{name}", code=name.replace("_", "-"))
    def _(given: Arguments) -> Problems:
        if getattr(given.args, name, False):
            what = f"trl.{name} = true: {reason}, so an interrupted run could not be resumed exactly."
            yield what, f"Leave {name} out; to save disk space write save_total_limit: 1."


_not_resumable("save_only_model", "checkpoints would hold no optimizer, learning rate and random state")
_not_resumable("ignore_data_skip", "a resumed run would begin with the first prompts again")
_not_resumable(
    "enable_jit_checkpoint", "it saves in the middle of a rollout batch; SIGTERM saves at its end here anyway"
)


@_rule("Checkpoints in the middle of a rollout batch", "trl.save_steps")
def checkpoint_inside_a_rollout_batch(given: Arguments) -> Problems:
    steps = given.args.save_steps
    if given.args.save_strategy == "steps" and given.block > 1 and steps % given.block:
        yield (
            f"trl.save_steps = {steps}, but {given.block_in_words()}. A checkpoint between them loses the batch, and "
            "resuming would train the same prompts again.",
            f"Write save_steps: {given.nearest(steps)}.",
        )


@_rule("A run whose last rollout batch is generated and then trained in part", "trl.max_steps")
def end_inside_a_rollout_batch(given: Arguments) -> Problems:
    steps, block = given.args.max_steps, given.block
    if steps > 0 and steps % block:
        below = steps // block * block
        yield (
            f"trl.max_steps = {steps}, but {given.block_in_words()}. The last rollout batch would be generated, scored "
            f"and trained for {steps % block} of its {block} steps.",
            f"Write max_steps: {f'{below} or ' if below else ''}{below + block}.",
        )


@_rule("A learning rate that follows the loss on held-out rows", "trl.lr_scheduler_type")
def learning_rate_follows_the_evaluation(given: Arguments) -> Problems:
    kind = given.args.lr_scheduler_type
    if kind in ("reduce_lr_on_plateau", "greedy"):
        yield (
            f"trl.lr_scheduler_type = {kind.value!r} follows the loss on held-out rows, and answers that a verifier "
            "scores have none.",
            "Write constant_with_warmup, linear or cosine.",
        )


@_rule("Best checkpoints in the middle of a rollout batch", "evaluation.every_steps", "evaluation.keep_best")
def best_checkpoint_inside_a_rollout_batch(given: Arguments) -> Problems:
    steps = given.args.eval_steps
    if given.keeps_best and steps % given.block:
        yield (
            f"evaluation.every_steps = {steps} with keep_best, but one rollout batch is trained for {given.block} "
            "optimizer steps: a checkpoint between them loses the batch, and resuming from it would train the same "
            "prompts again.",
            f"Write every_steps: {given.nearest(steps)}.",
        )


@_rule("The best checkpoint, where none is saved", "evaluation.keep_best", "trl.save_strategy")
def best_checkpoint_without_saving(given: Arguments) -> Problems:
    if given.keeps_best and given.args.save_strategy == "no":
        what = "evaluation.keep_best with trl.save_strategy 'no': no checkpoint is saved, so none can be kept."
        yield what, "Leave save_strategy out, or write best to save no others."


@_rule("The best checkpoint in the place of the last", "evaluation.keep_best", "trl.save_total_limit")
def best_checkpoint_alone(given: Arguments) -> Problems:
    if given.keeps_best and given.args.save_total_limit == 1:
        yield (
            "evaluation.keep_best with trl.save_total_limit = 1: the one that is kept would be the best, and the run "
            "could not be resumed from its last.",
            "Write save_total_limit: 2.",
        )
