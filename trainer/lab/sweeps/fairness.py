"""Variants that differ in what should be equal are refused: the comparison would not say what made the difference."""

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
SETTING_OF = {"rollouts": "trl.max_steps", "prompts_per_rollout": "algorithm.prompts_per_rollout"}
"""The setting that decides what is compared under another name."""


def check_fair(sweep: Sweep, plans: Sequence[Plan], tree: Node) -> None:
    """Compare every cell with its baseline's of the same seed and point of the grid.

    Equal must be the data, evaluations, verifiers, sampling, and the numbers of rollout batches and prompts. An entry
    of ``unfair`` allows a setting and everything below it.

    Raises:
        Refusal: they differ in a setting that ``unfair`` does not name.
    """
    baselines = {plan.cell.name: plan for plan in plans}
    problems = []
    for plan in plans:
        baseline = baselines[f"{plan.cell.baseline}-s{plan.cell.seed}"]
        expected, found = _should_be_equal(baseline), _should_be_equal(plan)
        for key in sorted(key for key in {*expected, *found} if expected.get(key) != found.get(key)):
            if any(f"{key}.".startswith(f"{entry}.") for entry in sweep.unfair):
                continue
            setting = SETTING_OF.get(key, key)
            counted = f" {key}" if key in SETTING_OF else ""
            what = (
                f"{plan.cell.variant!r} has {_shown(found.get(key))}{counted}, the baseline {plan.cell.baseline!r} "
                f"{_shown(expected.get(key))}."
            )
            instead = f"Make them equal, or write `unfair: [{key}]` if this is what you compare."
            path = (setting if setting in plan.cell.settings else key).split(".")
            problem = Problem(tuple(path), what, instead, code="unfair")
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
