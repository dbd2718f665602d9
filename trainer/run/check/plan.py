"""What a run will do, in numbers and as text."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from evenkeel.errors import Refusal
from evenkeel.trainer.algorithms.results import max_rounds
from evenkeel.trainer.run.check.context import CheckContext
from evenkeel.trainer.run.config import RunConfig, batch_plan

PROCESSES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
"""Numbers of processes that are tried."""


@dataclass(frozen=True)
class Plan:
    """A run in numbers. Tokens are bounds: completions may end before ``max_completion_length``.

    ``tokens_trained`` counts a token once for every pass over it: Lopti's two passes double it. ``generation_rounds``:
    how often a prompt sampler may generate a rollout batch again, which multiplies what is generated and not trained.
    """

    processes: int
    rows: int | None
    held_out_rows: int
    prompts_per_rollout: int
    completions_per_rollout: int
    rollouts: int | None
    passes: int
    generation_rounds: int
    optimizer_steps_per_rollout: int
    optimizer_steps: int | None
    epochs: float | None
    completions: int | None
    tokens_generated: int | None
    tokens_trained: int | None
    evaluations: int
    completions_per_evaluation: int
    checkpoints: int


def plan_of(context: CheckContext) -> Plan:
    """The plan."""
    batch, rows = context.plan, context.rows.get("train")
    num_passes = context.strategies.schedule.num_passes
    steps_per_rollout = batch.optimizer_steps_per_rollout * num_passes
    steps = _optimizer_steps(context, steps_per_rollout)
    rollouts = None if steps is None else math.ceil(steps / steps_per_rollout)
    completions = None if rollouts is None else rollouts * batch.sequences_per_rollout
    tokens = None if completions is None else completions * context.argument("max_completion_length")
    passes = batch.num_iterations * num_passes
    held_out = sum(len(each) for part, each in context.rows.items() if part != "train")
    sampler = context.strategies.prompt_sampler
    samples = sum(decoding.samples for decoding in context.config.evaluation.decodings)
    return Plan(
        processes=context.experiment.processes,
        rows=None if rows is None else len(rows),
        held_out_rows=held_out,
        prompts_per_rollout=batch.prompts_per_rollout,
        completions_per_rollout=batch.sequences_per_rollout,
        rollouts=rollouts,
        passes=passes,
        generation_rounds=1 if sampler is None else max_rounds(sampler),
        optimizer_steps_per_rollout=steps_per_rollout,
        optimizer_steps=steps,
        epochs=None if not rows or rollouts is None else rollouts * batch.prompts_per_rollout / len(rows),
        completions=completions,
        tokens_generated=tokens,
        tokens_trained=None if tokens is None else tokens * passes,
        evaluations=_evaluations(context, steps) if held_out else 0,
        completions_per_evaluation=held_out * samples,
        checkpoints=_checkpoints(context, steps),
    )


def _optimizer_steps(context: CheckContext, per_rollout: int) -> int:
    """``max_steps``, or those of ``num_train_epochs`` over the rows."""
    if (given := context.argument("max_steps")) > 0:
        return int(given)
    rollouts = len(context.rows["train"]) // context.plan.prompts_per_rollout
    return math.ceil(context.argument("num_train_epochs") * rollouts * per_rollout)


def _evaluations(context: CheckContext, steps: int | None) -> int:
    evaluation = context.config.evaluation
    between = 0 if evaluation.every_steps is None or steps is None else steps // evaluation.every_steps
    at_end = evaluation.every_steps is not None and steps is not None and steps % evaluation.every_steps == 0
    return int(evaluation.before) + between + int(not at_end)


def _checkpoints(context: CheckContext, steps: int | None) -> int:
    strategy, every = context.argument("save_strategy"), context.argument("save_steps")
    if strategy != "steps" or steps is None or every < 1:
        return 0 if strategy == "no" else 1
    written = int(steps // every) + int(steps % every != 0)
    limit = context.argument("save_total_limit")
    return written if limit is None else min(written, limit)


def plan_lines(plan: Plan) -> Iterator[str]:
    """The plan as text."""
    generated = f"{plan.prompts_per_rollout} prompts × {plan.completions_per_rollout // plan.prompts_per_rollout}"
    rows = "" if plan.rows is None else f" of {plan.rows:,} rows"
    if plan.rollouts is None or plan.completions is None or plan.tokens_generated is None:
        yield f"Each rollout batch: {generated} completions, {plan.optimizer_steps_per_rollout} optimizer steps."
    else:
        epochs = "" if plan.epochs is None else f" ({plan.epochs:.2g} epochs)"
        steps = _counted(plan.optimizer_steps or 0, "optimizer step")
        yield (
            f"Trains {steps} on {_counted(plan.rollouts, 'rollout batch', 'rollout batches')} of {generated} "
            f"completions{rows}{epochs}, {_counted(plan.optimizer_steps_per_rollout, 'step')} a batch, on "
            f"{_counted(plan.processes, 'process', 'processes')}."
        )
        again = f", each trained in {plan.passes} passes: {plan.tokens_trained:,}" if plan.passes > 1 else ""
        most = f", up to {plan.generation_rounds} times as many" if plan.generation_rounds > 1 else ""
        yield f"Generates {plan.completions:,} completions{most}, at most {plan.tokens_generated:,} tokens{again}."
    if plan.evaluations:
        yield (
            f"Evaluates {_counted(plan.evaluations, 'time')} on {plan.held_out_rows:,} held-out rows, "
            f"{plan.completions_per_evaluation:,} completions each time."
        )


def possible_processes(config: RunConfig) -> tuple[int, ...]:
    """Of `PROCESSES`, those on which the batch can be cut."""
    free = config.model_copy(update={"num_processes": None})

    def is_possible(count: int) -> bool:
        with suppress(Refusal):
            batch_plan(free, count)
            return True
        return False

    return tuple(filter(is_possible, PROCESSES))


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
