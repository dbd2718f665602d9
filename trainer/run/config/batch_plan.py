"""How one rollout batch is cut over devices, micro-batches and optimizer updates."""

import math
from dataclasses import dataclass
from typing import Any

from trainer.run.config.problems import ConfigError, Problem
from trainer.run.config.schema import RunConfig
from trainer.run.config.trl_arguments import grpo_default

_MOST_TRIED = 10**6
"""Divisors of a rollout batch that are looked at for the sizes nearest to a wrong one."""


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
        ConfigError: the run asks for another number of processes, or a rollout cannot be cut into whole groups,
            micro-batches and updates; the message holds the numbers and the nearest ones that work.
    """
    if config.num_processes not in (None, world_size):
        what = f"is {config.num_processes}, but the run was started on {world_size}."
        raise _refused("num_processes", what, f"Start it on {config.num_processes}, or change num_processes.")
    per_device, generations = _argument(config, "per_device_train_batch_size"), _argument(config, "num_generations")
    cut = _Cut(per_device, world_size, generations)
    prompts, update = config.algorithm.prompts_per_rollout, config.algorithm.sequences_per_update
    if prompts is not None and update is not None:
        steps = cut.steps_of_prompts(prompts, update)
        accumulation = cut.accumulation(update, prompts * generations)
    else:
        accumulation = _argument(config, "gradient_accumulation_steps")
        batch, steps = _argument(config, "generation_batch_size"), _argument(config, "steps_per_generation")
        steps = cut.steps_of_arguments(batch, steps, accumulation)
    return BatchPlan(world_size, per_device, generations, accumulation, steps, _argument(config, "num_iterations"))


def _argument(config: RunConfig, name: str) -> Any:
    return config.trl.get(name, grpo_default(name))


@dataclass(frozen=True)
class _Cut:
    """Checks one way of saying how a rollout is cut against what one micro-batch and one group hold."""

    per_device: int
    world_size: int
    generations: int

    @property
    def microbatch(self) -> int:
        return self.per_device * self.world_size

    @property
    def microbatch_in_words(self) -> str:
        return (
            f"the {self.microbatch} sequences of a micro-batch ({self.per_device} on each of {self.world_size} ranks)"
        )

    def steps_of_prompts(self, prompts: int, update: int) -> int:
        rollout = prompts * self.generations
        if rollout % self.microbatch:
            whole = update if update % self.microbatch == 0 else self.microbatch
            near = _neighbours(prompts, math.lcm(whole, self.generations) // self.generations)
            what = (
                f"{prompts} prompts × {self.generations} completions = {rollout} sequences is no multiple of "
                f"{self.microbatch_in_words}."
            )
            raise _refused("algorithm.prompts_per_rollout", what, f"Write {near}.")
        return rollout // self.microbatch

    def accumulation(self, update: int, rollout: int) -> int:
        if rollout % update or update % self.microbatch:
            count, rest = divmod(rollout, self.microbatch)
            small = [] if rest else [d for d in range(1, min(math.isqrt(count), _MOST_TRIED) + 1) if count % d == 0]
            fitting = [self.microbatch * each for d in small for each in (d, count // d)]
            lower = max((size for size in fitting if size < update), default=0)
            upper = min((size for size in fitting if size > update), default=0)
            what = (
                f"is {update}, which must divide the {rollout} sequences of a rollout and be a multiple of "
                f"{self.microbatch_in_words}."
            )
            raise _refused("algorithm.sequences_per_update", what, f"Write {_either(lower, upper)}.")
        return update // self.microbatch

    def steps_of_arguments(self, batch: int | None, steps: int | None, accumulation: int) -> int:
        if batch is not None and steps is not None:
            what = f"is {batch}, while trl.steps_per_generation is {steps}: both say how many sequences are generated."
            raise _refused("trl.generation_batch_size", what, "Delete one of the two.")
        whole = math.lcm(self.microbatch * accumulation, self.generations)
        if batch is not None:
            rollout, path, near = batch, "trl.generation_batch_size", _neighbours(batch, whole)
        else:
            steps = accumulation if steps is None else steps
            near = _neighbours(steps, whole // self.microbatch)
            rollout, path = steps * self.microbatch, "trl.steps_per_generation"
        reason = self._why_not_whole(rollout, accumulation)
        if reason:
            raise _refused(path, f"a rollout of {rollout} sequences {reason}", f"Write {near}.")
        return rollout // self.microbatch

    def _why_not_whole(self, rollout: int, accumulation: int) -> str:
        if rollout % self.microbatch:
            return f"is no multiple of {self.microbatch_in_words}."
        if rollout % self.generations:
            return f"does not hold whole groups of {self.generations} completions (trl.num_generations)."
        if rollout % (update := self.microbatch * accumulation):
            return f"cannot be cut into updates of {update}, so some update would mix two rollouts."
        return ""


def _neighbours(number: int, factor: int) -> str:
    """The multiples of ``factor`` just below and above ``number``, in words."""
    lower = number // factor * factor
    return _either(lower, lower + factor)


def _either(lower: int, upper: int) -> str:
    return " or ".join(str(number) for number in (lower, upper) if number)


def _refused(path: str, what: str, instead: str) -> ConfigError:
    return ConfigError([Problem(path, what, instead)])
