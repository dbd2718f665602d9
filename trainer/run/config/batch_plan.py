"""How one rollout batch is cut over devices, micro-batches and optimizer updates."""

import math
from dataclasses import dataclass

from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.schema import BATCH_WORDS, RunConfig

_CUT = ("generation_batch_size", "steps_per_generation", "gradient_accumulation_steps")


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
    argument = config.argument
    if config.num_processes not in (None, world_size):
        what = f"is {config.num_processes}, and {world_size} were started."
        raise config_error("other-number-of-processes", "num_processes", what, "Change one of the two.")
    per_device, generations = argument("per_device_train_batch_size"), argument("num_generations")
    microbatch = per_device * world_size
    prompts, update = config.algorithm.prompts_per_rollout, config.algorithm.sequences_per_update
    given = [f"trl.{name}" for name in _CUT if config.trl.get(name) is not None]
    given += [f"algorithm.{name}" for name in BATCH_WORDS if getattr(config.algorithm, name) is not None]
    if prompts is not None and update is not None:
        if given[2:]:
            raise config_error("cut-twice", given[0], "cuts the batch that algorithm cuts too.", "Delete one.")
        _must_be_whole("algorithm.sequences_per_update", update, microbatch)
        _must_be_whole("algorithm.prompts_per_rollout", prompts, math.lcm(update, generations) // generations)
        accumulation, rollout = update // microbatch, prompts * generations
    elif prompts is not None or update is not None:
        raise config_error("cut-by-half", given[-1], "cuts no batch alone.", f"Give {' and '.join(BATCH_WORDS)}.")
    else:
        accumulation, batch = argument("gradient_accumulation_steps"), argument("generation_batch_size")
        whole = math.lcm(microbatch * accumulation, generations)
        if batch is None:
            steps = argument("steps_per_generation") or accumulation
            _must_be_whole("trl.steps_per_generation", steps, whole // microbatch)
        elif argument("steps_per_generation") is not None:
            raise config_error("cut-twice", given[0], "cuts the batch that another cuts too.", "Delete one.")
        else:
            _must_be_whole("trl.generation_batch_size", batch, whole)
        rollout = steps * microbatch if batch is None else batch
    steps = rollout // microbatch
    return BatchPlan(world_size, per_device, generations, accumulation, steps, argument("num_iterations"))


def _must_be_whole(path: str, number: int, unit: int) -> None:
    """Refuse a number with which a rollout has no whole groups, or an update no whole micro-batches."""
    if number % unit:
        lower = number // unit * unit
        near = " or ".join(str(each) for each in (lower, lower + unit) if each)
        what = f"is {number}; whole groups, micro-batches and updates need a multiple of {unit}."
        raise config_error("cut", path, what, f"Write {near}.")
