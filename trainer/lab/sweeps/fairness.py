"""Refuse variants that differ in settings that must be equal, else the cause of a difference would be unknown."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from evenkeel.errors import Problem, Refusal
from evenkeel.trainer.lab.sweeps.loading import located_in_sweep
from evenkeel.trainer.lab.sweeps.plans import Plan
from evenkeel.trainer.lab.sweeps.schema import Sweep
from evenkeel.trainer.run.config.layers import flattened
from evenkeel.trainer.run.config.yaml_document import Node

SAMPLING = ("num_generations", "max_completion_length", "temperature", "top_p", "top_k", "min_p", "repetition_penalty")


def check_fair(sweep: Sweep, plans: Sequence[Plan], tree: Node) -> None:
    """Refuse cells that differ from their baseline's of the same seed and point of the grid.

    Data, evaluations, verifiers, sampling, and the numbers of rollout batches and prompts must be equal. An entry of
    ``unfair`` allows a setting and everything below it.
    """
    baselines = {plan.cell.name: plan for plan in plans}
    problems = []
    for plan in plans:
        baseline = baselines[f"{plan.cell.baseline}-s{plan.cell.seed}"]
        expected, found = _should_be_equal(baseline), _should_be_equal(plan)
        for key in sorted(key for key in {*expected, *found} if expected.get(key) != found.get(key)):
            if any(f"{key}.".startswith(f"{entry}.") for entry in sweep.unfair):
                continue
            ours, theirs = _shown(found.get(key)), _shown(expected.get(key))
            what = f"{plan.cell.variant!r} has {ours}, the baseline {plan.cell.baseline!r} {theirs}."
            instead = f"Make them equal, or write `unfair: [{key}]` if this is what you compare."
            problem = Problem(tuple(key.split(".")), what, instead, code="unfair")
            problems.append(located_in_sweep(problem, plan.cell, tree))
    if problems:
        raise Refusal(problems=list(dict.fromkeys(problems)))


def _should_be_equal(plan: Plan) -> dict[str, Any]:
    config, budget = plan.config.model_dump(), plan.budget
    every = plan.config.evaluation.every_steps
    evaluation = {**config["evaluation"], "every_steps": every and Fraction(every, budget.steps_per_rollout)}
    return {
        **flattened(config["data"], "data"),
        **flattened(evaluation, "evaluation"),
        **{f"rewards.{index}.verifier": reward["verifier"] for index, reward in enumerate(config["rewards"])},
        **{f"trl.{name}": plan.config.trl.get(name) for name in SAMPLING},
        "common_random_numbers": plan.config.common_random_numbers,
        "trl.num_train_epochs": plan.config.trl.get("num_train_epochs") if budget.rollouts is None else None,
        "prompts_per_rollout": budget.prompts_per_rollout,
        "rollouts": budget.rollouts,
    }


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, Fraction) else repr(value)
