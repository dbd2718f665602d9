"""Everything that can be found wrong before a GPU is paid for.

Each rule names the two settings that do not go together, why not, and what to write instead. What a setting would
silently change is refused, not approximated.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainer.algorithms.registry import Part
from trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN
from trainer.algorithms.strategies import Strategies
from trainer.algorithms.token_weights import uniform

if TYPE_CHECKING:
    from trl import GRPOConfig


class PreflightError(ValueError):
    """Settings that cannot work together; one paragraph a problem, all problems at once."""


def check_combination(args: "GRPOConfig", strategies: Strategies) -> None:
    """Refuse combinations of strategies and TRL settings whose result would not be what their names say.

    Raises:
        PreflightError: naming every combination found, with the way out.
    """
    num_passes = strategies.schedule.num_passes
    problems = [*_owned_settings(args, strategies.update_schedule.name, num_passes)]
    problems += _token_level_problems(args, strategies.advantage, strategies.token_weight)
    if "sequence_weights" in strategies.advantage.inputs:
        problems += _trajectory_weight_problems(args, strategies.advantage)
    if num_passes > 1:
        problems += _multi_pass_problems(args, strategies.update_schedule.name, num_passes)
    if problems:
        raise PreflightError("\n\n".join(problems))


def _owned_settings(args: "GRPOConfig", update_schedule: str, num_passes: int) -> Iterator[str]:
    if args.scale_rewards != "group":
        instead = "advantage: dr_grpo" if args.scale_rewards == "none" else "advantage: reinforce_pp, or your own"
        yield (
            f"scale_rewards = {args.scale_rewards!r} is set, but the advantage estimator decides how rewards are "
            f"scaled, so the setting would do nothing. Leave it out and write {instead}."
        )
    if args.multi_objective_aggregation != "sum_then_normalize":
        yield (
            f"multi_objective_aggregation = {args.multi_objective_aggregation!r} is set, but the advantage estimator "
            "receives the weighted sum of the rewards, so the setting would do nothing. Leave it out; an estimator of "
            "your own can normalise."
        )
    if num_passes > 1 and args.num_iterations != 1:
        yield (
            f"num_iterations = {args.num_iterations} is set, but update_schedule {update_schedule!r} makes "
            f"{num_passes} passes over each rollout batch itself. Leave num_iterations out."
        )


def _token_level_problems(args: "GRPOConfig", advantage: Part, token_weight: Part) -> Iterator[str]:
    if args.importance_sampling_level != "sequence" or args.loss_type == "cispo":  # cispo detaches its ratio
        return
    token_level = [
        f"advantage {advantage.name!r} with {option}"
        for option in ("prefix_tree", "token_class")
        if advantage.options.get(option)
    ]
    if token_weight.function is not uniform:
        token_level.append(f"token_weight {token_weight.name!r}")
    for strategy in token_level:
        yield (
            f"{strategy} with importance_sampling_level 'sequence': the gradient of a trajectory's ratio reaches all "
            "of its tokens alike, so each would receive the average over the response and not its own. "
            "Use importance_sampling_level: token."
        )


def _trajectory_weight_problems(args: "GRPOConfig", advantage: Part) -> Iterator[str]:
    name = f"advantage {advantage.name!r}"
    known = PER_SEQUENCE_MEAN | ONE_DENOMINATOR
    if args.loss_type not in known:
        yield (
            f"{name} matches its baseline to the loss's weight of each trajectory, but under loss_type "
            f"{args.loss_type!r} that weight is not known when advantages are computed. "
            f"Use one of {', '.join(sorted(known))}."
        )
    on_policy = args.gradient_accumulation_steps % (args.steps_per_generation * args.num_iterations) == 0
    if args.importance_sampling_level == "sequence" and not on_policy:
        yield (
            f"{name} with importance_sampling_level 'sequence': each rollout batch is trained for more than one "
            "optimizer step, the trajectory's ratio changes after the first, and the baseline cannot follow. "
            "Use importance_sampling_level: token, or one optimizer step per rollout batch "
            "(steps_per_generation = gradient_accumulation_steps, num_iterations: 1)."
        )
    sequence_correction = (
        args.use_vllm
        and args.vllm_importance_sampling_correction
        and args.vllm_importance_sampling_mode.startswith("sequence")
    )
    if advantage.options.get("prefix_tree") and (args.loss_type in PER_SEQUENCE_MEAN or sequence_correction):
        cause = (
            f"loss_type {args.loss_type!r} divides by its own length"
            if args.loss_type in PER_SEQUENCE_MEAN
            else f"vllm_importance_sampling_mode {args.vllm_importance_sampling_mode!r} reweights"
        )
        yield (
            f"{name} with prefix_tree averages plain rewards, but {cause} each trajectory, so shared tokens would not "
            "cancel. Use loss_type dapo, dr_grpo or cispo with a token-level correction, or leave prefix_tree off."
        )


def _multi_pass_problems(args: "GRPOConfig", name: str, num_passes: int) -> Iterator[str]:
    schedule = f"update_schedule {name!r}"
    if args.steps_per_generation % args.gradient_accumulation_steps != 0:
        yield (
            f"{schedule}: a pass is {args.steps_per_generation} micro-batches (steps_per_generation), which is no "
            f"whole number of optimizer steps of {args.gradient_accumulation_steps} (gradient_accumulation_steps), so "
            "two passes would share a step. Make steps_per_generation a multiple of gradient_accumulation_steps."
        )
    if args.importance_sampling_level == "sequence":
        yield (
            f"{schedule} with importance_sampling_level 'sequence': the gradient of a trajectory's ratio reaches every "
            "token of it, so the passes would not isolate theirs. Use importance_sampling_level: token."
        )
    if args.entropy_coef != 0.0 or args.use_adaptive_entropy:
        yield (
            f"{schedule} with an entropy bonus: TRL averages it over all tokens in every pass, so each token would "
            f"receive it {num_passes} times. Set entropy_coef: 0.0 and use_adaptive_entropy: false."
        )
    if args.beta == 0.0:
        return
    if args.loss_type not in ONE_DENOMINATOR:
        yield (
            f"{schedule} with beta = {args.beta} and loss_type {args.loss_type!r}: the KL term must act on the tokens "
            "of its pass alone, but this loss divides by the mask that would select them. "
            f"Use one of {', '.join(sorted(ONE_DENOMINATOR))}, or beta: 0.0."
        )
    if args.top_entropy_quantile < 1.0 or args.off_policy_mask_threshold is not None:
        yield (
            f"{schedule} with beta = {args.beta} and top_entropy_quantile or off_policy_mask_threshold: both compute a "
            "threshold over the mask that a pass narrows. Leave them out, or set beta: 0.0."
        )
