"""The plan of a run, in numbers and as text."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from evenkeel.trainer.run.check.context import CheckContext


@dataclass(frozen=True)
class Plan:
    """A run in numbers. Tokens are bounds: completions may end before ``max_completion_length``.

    ``passes`` over each token: Lopti doubles them. Completions that a prompt sampler regenerates are not counted.
    """

    processes: int
    rows: int
    held_out_rows: int
    prompts_per_rollout: int
    completions_per_rollout: int
    rollouts: int
    optimizer_steps_per_rollout: int
    optimizer_steps: int
    epochs: float
    completions: int
    tokens_generated: int
    passes: int
    evaluations: int
    completions_per_evaluation: int


def plan_of(context: CheckContext) -> Plan:
    """The plan of a run whose parts could be built."""
    batch, rows, passes = context.plan, len(context.rows["train"]), context.strategies.schedule.num_passes
    argument = context.config.argument
    of_rollout = batch.optimizer_steps_per_rollout * passes
    steps = int(argument("max_steps"))
    if steps <= 0:
        steps = math.ceil(argument("num_train_epochs") * (rows // batch.prompts_per_rollout) * of_rollout)
    rollouts = math.ceil(steps / of_rollout)
    completions = rollouts * batch.sequences_per_rollout
    held_out = sum(len(each) for part, each in context.rows.items() if part != "train")
    evaluation = context.config.evaluation
    between = (steps - 1) // evaluation.every_steps if evaluation.every_steps else 0
    return Plan(
        processes=context.experiment.processes,
        rows=rows,
        held_out_rows=held_out,
        prompts_per_rollout=batch.prompts_per_rollout,
        completions_per_rollout=batch.sequences_per_rollout,
        rollouts=rollouts,
        optimizer_steps_per_rollout=of_rollout,
        optimizer_steps=steps,
        epochs=rollouts * batch.prompts_per_rollout / rows,
        completions=completions,
        tokens_generated=completions * argument("max_completion_length"),
        passes=batch.num_iterations * passes,
        evaluations=evaluation.before + between + 1 if held_out else 0,
        completions_per_evaluation=held_out * sum(decoding.samples for decoding in evaluation.decodings),
    )


def plan_lines(plan: Plan) -> Iterator[str]:
    """The plan as text."""
    completions = plan.completions_per_rollout // plan.prompts_per_rollout
    yield (
        f"Rollout batches: {plan.rollouts:,} of {plan.prompts_per_rollout} prompts × {completions} completions "
        f"from {plan.rows:,} rows ({plan.epochs:.2g} epochs). Optimizer steps: {plan.optimizer_steps:,}, "
        f"{plan.optimizer_steps_per_rollout} a batch. Processes: {plan.processes}."
    )
    again = f", each trained in {plan.passes} passes" if plan.passes > 1 else ""
    yield f"Completions: {plan.completions:,}, at most {plan.tokens_generated:,} tokens{again}."
    if plan.evaluations:
        each = f"{plan.completions_per_evaluation:,} completions of {plan.held_out_rows:,} held-out rows"
        yield f"Evaluations: {plan.evaluations:,}, each {each}."
