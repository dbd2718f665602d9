"""What a run will do, in numbers and as text."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from evenkeel.trainer.run.check.context import CheckContext


@dataclass(frozen=True)
class Plan:
    """A run in numbers. Tokens are bounds: completions may end before ``max_completion_length``.

    ``tokens_trained`` counts a token once for every pass over it: Lopti's two passes double it. What a prompt sampler
    generates again is not counted.
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
    tokens_trained: int
    evaluations: int
    completions_per_evaluation: int
    checkpoints: int


def plan_of(context: CheckContext) -> Plan:
    """The plan."""
    batch, rows, passes = context.plan, len(context.rows["train"]), context.strategies.schedule.num_passes
    of_rollout = batch.optimizer_steps_per_rollout * passes
    steps = int(context.argument("max_steps"))
    if steps <= 0:
        steps = math.ceil(context.argument("num_train_epochs") * (rows // batch.prompts_per_rollout) * of_rollout)
    rollouts = math.ceil(steps / of_rollout)
    completions = rollouts * batch.sequences_per_rollout
    tokens = completions * context.argument("max_completion_length")
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
        tokens_generated=tokens,
        passes=batch.num_iterations * passes,
        tokens_trained=tokens * batch.num_iterations * passes,
        evaluations=evaluation.before + between + 1 if held_out else 0,
        completions_per_evaluation=held_out * sum(decoding.samples for decoding in evaluation.decodings),
        checkpoints=_checkpoints(context, steps),
    )


def _checkpoints(context: CheckContext, steps: int) -> int:
    strategy, every = context.argument("save_strategy"), context.argument("save_steps")
    if strategy != "steps" or every < 1:
        return 0 if strategy == "no" else 1
    return min(math.ceil(steps / every), context.argument("save_total_limit") or steps)


def plan_lines(plan: Plan) -> Iterator[str]:
    """The plan as text."""
    completions = plan.completions_per_rollout // plan.prompts_per_rollout
    yield (
        f"Rollout batches: {plan.rollouts:,} of {plan.prompts_per_rollout} prompts × {completions} completions "
        f"from {plan.rows:,} rows ({plan.epochs:.2g} epochs). Optimizer steps: {plan.optimizer_steps:,}, "
        f"{plan.optimizer_steps_per_rollout} a batch. Processes: {plan.processes}."
    )
    again = f", each trained in {plan.passes} passes: {plan.tokens_trained:,}" if plan.passes > 1 else ""
    yield f"Completions: {plan.completions:,}, at most {plan.tokens_generated:,} tokens{again}."
    if plan.evaluations:
        each = f"{plan.completions_per_evaluation:,} completions of {plan.held_out_rows:,} held-out rows"
        yield f"Evaluations: {plan.evaluations:,}, each {each}."
