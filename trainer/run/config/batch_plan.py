"""How one rollout batch is cut over devices, micro-batches and optimizer updates."""

import math
from dataclasses import dataclass
from typing import Any

from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.schema import BATCH_WORDS, RunConfig
from evenkeel.trainer.run.config.trl_arguments import grpo_default

_CUT = ("generation_batch_size", "steps_per_generation", "gradient_accumulation_steps")
_MOST_TRIED = 10**6
"""Largest number of divisors of a rollout batch that are tried to name the sizes nearest to a wrong one."""


@dataclass(frozen=True)
class BatchPlan:
    """The batch arithmetic of a run on ``world_size`` processes; a sequence is one prompt with one completion.

    Attributes:
        sequences_per_microbatch: over all processes, in one forward and backward pass.
        sequences_per_update: over all processes, in one optimizer step.
        sequences_per_rollout: generated together; ``prompts_per_rollout`` groups of ``num_generations``.
        steps_per_generation: micro-batches that a rollout is cut into.
        updates_per_pass: optimizer steps in which every sequence of a rollout is trained once.
        num_iterations: TRL's μ, how often a rollout is trained.
        optimizer_steps_per_rollout: ``updates_per_pass · num_iterations``; an update schedule of several passes
            multiplies it.
    """

    world_size: int
    per_device_train_batch_size: int
    num_generations: int
    gradient_accumulation_steps: int
    steps_per_generation: int
    num_iterations: int

    @property
    def sequences_per_microbatch(self) -> int:
        return self.per_device_train_batch_size * self.world_size

    @property
    def sequences_per_update(self) -> int:
        return self.sequences_per_microbatch * self.gradient_accumulation_steps

    @property
    def sequences_per_rollout(self) -> int:
        return self.sequences_per_microbatch * self.steps_per_generation

    @property
    def prompts_per_rollout(self) -> int:
        return self.sequences_per_rollout // self.num_generations

    @property
    def updates_per_pass(self) -> int:
        return self.steps_per_generation // self.gradient_accumulation_steps

    @property
    def optimizer_steps_per_rollout(self) -> int:
        return self.updates_per_pass * self.num_iterations


def batch_plan(config: RunConfig, world_size: int) -> BatchPlan:
    """The batch arithmetic of ``config`` on ``world_size`` processes.

    Raises:
        Refusal: the run asks for another number of processes, or a rollout cannot be cut into whole groups,
            micro-batches and updates; the message holds the numbers and the nearest ones that work.
    """

    def argument(name: str) -> Any:
        return config.trl.get(name, grpo_default(name))

    if config.num_processes not in (None, world_size):
        what = f"is {config.num_processes}, but the run was started on {world_size}."
        instead = f"Start it on {config.num_processes}, or change num_processes."
        raise config_error("other-number-of-processes", "num_processes", what, instead)
    per_device, generations = argument("per_device_train_batch_size"), argument("num_generations")
    microbatch = per_device * world_size
    named = f"the {microbatch} sequences of a micro-batch ({per_device} on each of {world_size} ranks)"
    prompts, update = config.algorithm.prompts_per_rollout, config.algorithm.sequences_per_update
    if (prompts is None) != (update is None):
        missing, other = [f"algorithm.{name}" for name in BATCH_WORDS][:: 1 if prompts is None else -1]
        raise config_error("cut-by-half", other, "does not cut a batch alone.", f"Give {missing} too.")
    if twice := [name for name in _CUT if prompts is not None and config.trl.get(name) is not None]:
        what = "cuts the batch that algorithm.prompts_per_rollout cuts."
        raise config_error("cut-twice", f"trl.{twice[0]}", what, "Delete one of the two.")
    if prompts is not None and update is not None:
        rollout = prompts * generations
        if rollout % microbatch:
            whole = update if update % microbatch == 0 else microbatch
            what = f"{prompts} prompts × {generations} completions = {rollout} sequences is not a multiple of {named}."
            near = _neighbours(prompts, math.lcm(whole, generations) // generations)
            raise config_error("cut-microbatch", "algorithm.prompts_per_rollout", what, f"Write {near}.")
        if rollout % update or update % microbatch:
            what = f"is {update}, which must divide the {rollout} sequences of a rollout and be a multiple of {named}."
            near = _nearest_update(update, rollout, microbatch)
            raise config_error("cut-update", "algorithm.sequences_per_update", what, f"Write {near}.")
        accumulation = update // microbatch
    else:
        accumulation = argument("gradient_accumulation_steps")
        batch, steps = argument("generation_batch_size"), argument("steps_per_generation")
        rollout = _rollout_of_arguments(batch, steps, accumulation, microbatch, generations, named)
    iterations = argument("num_iterations")
    return BatchPlan(world_size, per_device, generations, accumulation, rollout // microbatch, iterations)


def _rollout_of_arguments(
    batch: int | None, steps: int | None, accumulation: int, microbatch: int, generations: int, named: str
) -> int:
    """Sequences of a rollout as TRL's own arguments give them, if they hold whole groups and updates."""
    if batch is not None and steps is not None:
        what = f"is {batch}, while trl.steps_per_generation is {steps}: both say how many sequences are generated."
        raise config_error("rollout-twice", "trl.generation_batch_size", what, "Delete one of the two.")
    update = microbatch * accumulation
    whole = math.lcm(update, generations)
    if batch is not None:
        rollout, path, near = batch, "trl.generation_batch_size", _neighbours(batch, whole)
    else:
        steps = accumulation if steps is None else steps
        near = _neighbours(steps, whole // microbatch)
        rollout, path = steps * microbatch, "trl.steps_per_generation"
    if rollout % microbatch:
        code, reason = "cut-microbatch", f"is not a multiple of {named}."
    elif rollout % generations:
        code, reason = "cut-group", f"does not hold whole groups of {generations} completions (trl.num_generations)."
    elif rollout % update:
        code, reason = "cut-update", f"cannot be cut into updates of {update}, so some update would mix two rollouts."
    else:
        return rollout
    raise config_error(code, path, f"a rollout of {rollout} sequences {reason}", f"Write {near}.")


def _nearest_update(update: int, rollout: int, microbatch: int) -> str:
    """The sizes of an update just below and above ``update`` that divide the rollout into whole micro-batches."""
    count, rest = divmod(rollout, microbatch)
    small = [] if rest else [d for d in range(1, min(math.isqrt(count), _MOST_TRIED) + 1) if count % d == 0]
    fitting = [microbatch * each for d in small for each in (d, count // d)]
    lower = max((size for size in fitting if size < update), default=0)
    return _either(lower, min((size for size in fitting if size > update), default=0))


def _neighbours(number: int, factor: int) -> str:
    """The multiples of ``factor`` just below and above ``number``."""
    lower = number // factor * factor
    return _either(lower, lower + factor)


def _either(lower: int, upper: int) -> str:
    return " or ".join(str(number) for number in (lower, upper) if number)
