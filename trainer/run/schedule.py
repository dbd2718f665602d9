"""Refused arguments of TRL: checkpoints, evaluations and the end of a run must lie between rollout batches."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenkeel.errors import Refusal, Rule, Said, rule
from evenkeel.trainer.step.options import Schedule


def optimizer_steps_per_block(args: Any, num_passes: int = 1) -> int:
    """Optimizer steps from one boundary of a rollout batch to the next that is also the end of an optimizer step.

    A checkpoint is exact only at a multiple of this. ``args`` are TRL's, ``num_passes`` the update schedule's.
    """
    schedule = Schedule.of(args, num_passes)
    return math.lcm(schedule.microbatches_per_rollout, schedule.accumulated) // schedule.accumulated


@dataclass(frozen=True)
class Arguments:
    """Input of `ARGUMENT_RULES`: TRL's arguments, and the passes of the update schedule."""

    args: Any
    num_passes: int = 1

    @property
    def keeps_best(self) -> bool:
        return self.args.metric_for_best_model is not None


def check_arguments(args: Any, num_passes: int = 1) -> None:
    """Refuse arguments of TRL under which a run could not be resumed exactly, or would end inside a rollout batch."""
    given = Arguments(args, num_passes)
    if problems := [problem for each in ARGUMENT_RULES for problem in each.problems(given)]:
        raise Refusal(problems=problems)


ARGUMENT_RULES: list[Rule] = []
"""What is refused of TRL's arguments in a run, which must be resumable; the drop-in takes what TRL takes."""


@rule(ARGUMENT_RULES, "trl.save_only_model trl.ignore_data_skip trl.enable_jit_checkpoint")
def not_resumable(given: Arguments) -> Said:
    """Arguments under which an interrupted run could not be resumed exactly."""
    for name in ("save_only_model", "ignore_data_skip", "enable_jit_checkpoint"):
        if getattr(given.args, name, False):
            yield f"trl.{name}", "is true: the run could not be resumed exactly. Leave it out."


@rule(ARGUMENT_RULES, "trl.save_steps trl.max_steps evaluation.every_steps")
def inside_a_rollout_batch(given: Arguments) -> Said:
    """A checkpoint, or the end, in the middle of a rollout batch."""
    args, block = given.args, optimizer_steps_per_block(given.args, given.num_passes)
    steps = {"trl.save_steps": args.save_steps if args.save_strategy == "steps" and block > 1 else 0}
    steps["trl.max_steps"] = max(args.max_steps, 0)
    steps["evaluation.every_steps"] = given.keeps_best and args.eval_steps
    for path, number in steps.items():
        if number and number % block:
            below = int(number // block * block)
            instead = f"{below} or {below + block}" if below else f"{block}"
            yield path, f"is {number:g}, and a rollout batch is trained for {block} optimizer steps. Write {instead}."


@rule(ARGUMENT_RULES, "evaluation.keep_best trl.save_strategy trl.save_total_limit")
def best_checkpoint(given: Arguments) -> Said:
    """The best checkpoint where none is saved, or in the place of the last."""
    if given.keeps_best and given.args.save_strategy == "no":
        yield "is given, and trl.save_strategy 'no' saves no checkpoint. Leave save_strategy out."
    if given.keeps_best and given.args.save_total_limit == 1:
        yield "trl.save_total_limit", "is 1, and evaluation.keep_best needs a second checkpoint. Write 2."


class _Asked(dict[str, str]):
    """``optim_args`` that record which keys an optimizer reads."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.keys_asked: dict[str, None] = {}

    def __contains__(self, key: object) -> bool:
        self.keys_asked[str(key)] = None
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.keys_asked[key] = None
        return super().get(key, default)

    def pop(self, key: str, default: Any = None) -> Any:
        return self.get(key, default)


@rule(ARGUMENT_RULES, "trl.optim_args trl.optim")
def optimizer_arguments(given: Arguments) -> Said:
    """A key of `optim_args` that the optimizer does not read, which transformers leaves out in silence."""
    args = given.args
    if not args.optim_args or args.deepspeed:  # DeepSpeed may make its own
        return
    from transformers.trainer_optimizer import _OPTIMIZER_HANDLERS, OptimizerContext, _parse_optim_args

    try:
        asked = _Asked(_parse_optim_args(args.optim_args))
        adam = {"betas": (args.adam_beta1, args.adam_beta2), "eps": args.adam_epsilon}
        context = OptimizerContext(args, None, {"lr": args.learning_rate}, adam, asked)
        _, options = _OPTIMIZER_HANDLERS[args.optim](context)
    except Exception:  # noqa: BLE001 — what an optimizer refuses is said where it is made
        return
    # of each group of parameters it is trl.weight_decay
    asked.keys_asked.pop("weight_decay", None)
    if unread := [key for key, value in asked.items() if key not in asked.keys_asked and options.get(key) != value]:
        takes = ", ".join(asked.keys_asked) or "nothing"
        name = args.optim.value
        yield f"is {args.optim_args!r}: {', '.join(unread)} would have no effect. {name} reads {takes} there."
