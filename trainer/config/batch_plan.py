"""How one rollout batch is cut over devices, micro-batches and optimizer updates."""

import math
from dataclasses import dataclass
from typing import Any

from trainer.config.problems import ConfigError, Problem
from trainer.config.schema import RunConfig
from trainer.config.trl_arguments import grpo_default


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
    microbatch = per_device * world_size
    if config.algorithm.prompts_per_rollout is not None and config.algorithm.sequences_per_update is not None:
        rollout = config.algorithm.prompts_per_rollout * generations
        steps = _steps_of_prompts(config.algorithm.prompts_per_rollout, generations, per_device, world_size)
        accumulation = _accumulation(config.algorithm.sequences_per_update, rollout, per_device, world_size)
    else:
        accumulation = _argument(config, "gradient_accumulation_steps")
        steps = _steps_of_arguments(config, accumulation, per_device, world_size)
        _check_whole_groups(microbatch, steps, generations)
    if steps % accumulation:
        lower, upper = _neighbours(steps, accumulation)
        what = (
            f"a rollout of {steps} micro-batches cannot be cut into updates of {accumulation}: some "
            "update would mix two rollouts."
        )
        instead = f"Generate {_either(lower, upper)} micro-batches at once (trl.steps_per_generation)."
        raise _refused("trl.gradient_accumulation_steps", what, instead)
    return BatchPlan(world_size, per_device, generations, accumulation, steps, _argument(config, "num_iterations"))


def _argument(config: RunConfig, name: str) -> Any:
    return config.trl.get(name, grpo_default(name))


def _steps_of_prompts(prompts: int, generations: int, per_device: int, world_size: int) -> int:
    microbatch = per_device * world_size
    if prompts * generations % microbatch:
        lower, upper = _neighbours(prompts, microbatch // math.gcd(microbatch, generations))
        what = (
            f"{prompts} prompts × {generations} completions = {prompts * generations} sequences cannot be cut into "
            f"micro-batches of {per_device} on each of {world_size} processes ({microbatch})."
        )
        raise _refused("algorithm.prompts_per_rollout", what, f"Write {_either(lower, upper)}.")
    return prompts * generations // microbatch


def _accumulation(update: int, rollout: int, per_device: int, world_size: int) -> int:
    microbatch = per_device * world_size
    if rollout % update or update % microbatch:
        fitting = [size for size in range(microbatch, rollout + 1, microbatch) if rollout % size == 0]
        lower = max((size for size in fitting if size < update), default=0)
        upper = min((size for size in fitting if size > update), default=0)
        what = (
            f"is {update}, which must divide the {rollout} sequences of a rollout and be a multiple of the "
            f"{microbatch} of a micro-batch ({per_device} on each of {world_size} processes)."
        )
        instead = f"Write {_either(lower, upper)}." if fitting else "Change trl.per_device_train_batch_size."
        raise _refused("algorithm.sequences_per_update", what, instead)
    return update // microbatch


def _steps_of_arguments(config: RunConfig, accumulation: int, per_device: int, world_size: int) -> int:
    batch, steps = _argument(config, "generation_batch_size"), _argument(config, "steps_per_generation")
    microbatch = per_device * world_size
    if batch is not None and steps is not None:
        what = f"is {batch}, while trl.steps_per_generation is {steps}: both say how many sequences are generated."
        raise _refused("trl.generation_batch_size", what, "Delete one of the two.")
    if batch is not None and batch % microbatch:
        what = (
            f"is {batch}, which is no multiple of the {microbatch} sequences of a micro-batch ({per_device} on each of "
            f"{world_size} processes)."
        )
        raise _refused("trl.generation_batch_size", what, f"Write {_either(*_neighbours(batch, microbatch))}.")
    return batch // microbatch if batch is not None else steps if steps is not None else accumulation


def _check_whole_groups(microbatch: int, steps: int, generations: int) -> None:
    if microbatch * steps % generations:
        lower, upper = _neighbours(steps, generations // math.gcd(microbatch, generations))
        what = (
            f"is {generations}, which does not divide a rollout of {steps} × {microbatch} = {steps * microbatch} "
            "sequences into whole groups."
        )
        instead = f"Generate {_either(lower, upper)} micro-batches at once (trl.steps_per_generation)."
        raise _refused("trl.num_generations", what, instead)


def _neighbours(number: int, factor: int) -> tuple[int, int]:
    """The multiples of ``factor`` around ``number``; 0 for a lower one that does not exist."""
    lower = number // factor * factor
    return lower, lower + factor


def _either(lower: int, upper: int) -> str:
    return " or ".join(str(number) for number in (lower, upper) if number)


def _refused(path: str, what: str, instead: str) -> ConfigError:
    return ConfigError([Problem(path, what, instead)])
