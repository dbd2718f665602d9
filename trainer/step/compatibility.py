"""Which strategies and TRL settings are exact together: everything that can be found wrong before a GPU is paid for.

Each rule names the two settings that do not go together, why not, and what to write instead. Rules ask what a strategy
is (its signals, traits, what it returned on the tiny example), never what it is called. What a setting would silently
change is refused, not approximated.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rewards.registry import Refusal
from trainer.algorithms.contract import COEFFICIENT
from trainer.algorithms.registry import Strategy
from trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN
from trainer.algorithms.strategies import Strategies
from trainer.step.rollout_batches import forwards_per_rollout

if TYPE_CHECKING:
    from trl import GRPOConfig

DETACHED = ("cispo", "vespo")
"""Loss types whose ratio is under stop-gradient, so that each token receives its own gradient at sequence level too."""


class PreflightError(Refusal):
    """Settings that cannot work together; one paragraph a problem, all problems at once."""


def check_combination(args: "GRPOConfig", strategies: Strategies, *, drop_in: bool = False) -> None:
    """Refuse combinations of strategies and TRL settings whose result would not be what their names say.

    Args:
        drop_in: no strategy was asked for: nothing that TRL accepts is refused.

    Raises:
        PreflightError: naming every combination found, with the way out.
    """
    problems = [
        *_owned_settings(args, strategies),
        *_token_level(args, strategies),
        *_trajectory_weights(args, strategies),
        *_cancellation(args, strategies),
        *_coefficient(args, strategies),
        *_whole_groups(args, strategies),
        *_passes(args, strategies),
    ]
    if not drop_in:
        problems += _sampling(args, strategies)
    if (revision := strategies.revision) is not None and revision.references >= args.num_generations:
        problems.append(
            f"revision.references = {revision.references} with num_generations = {args.num_generations}: an answer has "
            f"{args.num_generations - 1} siblings to compare it with. Write references: {args.num_generations - 1} or "
            "less, or raise num_generations."
        )
    if problems:
        raise PreflightError("\n\n".join(problems))


def leaves_advantages_to_trl(args: "GRPOConfig") -> bool:
    """Whether TRL is asked to scale or aggregate rewards in its own way."""
    return args.scale_rewards != "group" or args.multi_objective_aggregation != "sum_then_normalize"


def is_on_policy(args: "GRPOConfig", strategies: Strategies) -> bool:
    """Whether every rollout batch is trained in one optimizer step, so that the ratio is 1."""
    return args.gradient_accumulation_steps % forwards_per_rollout(args, strategies.schedule.num_passes) == 0


def _described(part: Strategy) -> str:
    return f"{part.kind} {part.name!r}"


def _owned_settings(args: "GRPOConfig", strategies: Strategies) -> Iterator[str]:
    if strategies.advantage is not None and args.scale_rewards != "group":
        instead = "advantage: dr_grpo" if args.scale_rewards == "none" else "advantage: reinforce_pp, or your own"
        yield (
            f"scale_rewards = {args.scale_rewards!r} is set, but the advantage estimator decides how rewards are "
            f"scaled, so the setting would do nothing. Leave it out and write {instead}."
        )
    if strategies.advantage is not None and args.multi_objective_aggregation != "sum_then_normalize":
        yield (
            f"multi_objective_aggregation = {args.multi_objective_aggregation!r} is set, but the advantage estimator "
            "decides how rewards are put together, so the setting would do nothing. Leave it out and write advantage: "
            "gdpo, or an estimator of your own that asks for rewards_per_function."
        )
    num_passes = strategies.schedule.num_passes
    if num_passes > 1 and args.num_iterations != 1:
        yield (
            f"num_iterations = {args.num_iterations} is set, but {_described(strategies.update_schedule)} makes "
            f"{num_passes} passes over each rollout batch itself. Leave num_iterations out."
        )


def _sampling(args: "GRPOConfig", strategies: Strategies) -> Iterator[str]:
    ratio = not is_on_policy(args, strategies) or (args.use_vllm and args.vllm_importance_sampling_correction)
    plain = {"top_p": (1.0,), "top_k": (0, -1, None), "min_p": (0.0, None), "repetition_penalty": (1.0,)}
    plain |= dict.fromkeys(("presence_penalty", "frequency_penalty"), (0.0, None)) | {
        "temperature": (args.temperature,)
    }
    given = {name: getattr(args, name, None) for name in plain} | (args.generation_kwargs or {})
    changed = {name: given[name] for name, usual in plain.items() if given[name] not in usual}
    if ratio and changed:
        settings = ", ".join(f"{name} = {value:g}" for name, value in changed.items())
        yield (
            f"{settings} with an importance ratio: completions are drawn from another distribution than π_old, whose "
            "probabilities the ratio divides by, so it would correct for the wrong one. Leave "
            f"{', '.join(changed)} out, or train each rollout batch in one optimizer step without a correction."
        )


def _token_level(args: "GRPOConfig", strategies: Strategies) -> Iterator[str]:
    if args.importance_sampling_level != "sequence" or args.loss_type in DETACHED:
        return
    estimator = strategies.advantage
    token_level = [_described(estimator)] if estimator is not None and estimator.token_level else []
    token_level += [_described(strategies.token_weight)] if strategies.token_weight is not None else []
    for strategy in token_level:
        yield (
            f"{strategy} with importance_sampling_level 'sequence': the gradient of a trajectory's ratio reaches all "
            "of its tokens alike, so each would receive the average over the response and not its own. "
            "Use importance_sampling_level: token."
        )


def _trajectory_weights(args: "GRPOConfig", strategies: Strategies) -> Iterator[str]:
    estimator = strategies.advantage
    if estimator is None:
        return
    if estimator.token_level and args.off_policy_mask_threshold is not None:
        yield (
            f"{_described(estimator)} with off_policy_mask_threshold: TRL drops a response by the sign of its "
            "advantage, which here differs from token to token, so it would drop parts of responses. Leave it out."
        )
    name, known = _described(estimator), PER_SEQUENCE_MEAN | ONE_DENOMINATOR
    matches = "sequence_weights" in estimator.signals
    if matches and args.loss_type not in known:
        yield (
            f"{name} matches its baseline to the loss's weight of each trajectory, but under loss_type "
            f"{args.loss_type!r} that weight is not known when advantages are computed. "
            f"Use one of {', '.join(sorted(known))}."
        )
    if matches and args.importance_sampling_level == "sequence" and not is_on_policy(args, strategies):
        yield (
            f"{name} with importance_sampling_level 'sequence': each rollout batch is trained for more than one "
            "optimizer step, the trajectory's ratio changes after the first, and the baseline cannot follow. "
            "Use importance_sampling_level: token, or one optimizer step per rollout batch "
            "(steps_per_generation = gradient_accumulation_steps, num_iterations: 1)."
        )
    mode = args.vllm_importance_sampling_mode
    corrected = args.use_vllm and args.vllm_importance_sampling_correction and mode.startswith("sequence")
    if estimator.traits.needs_equal_sequence_weights and (args.loss_type in PER_SEQUENCE_MEAN or corrected):
        cause = (
            f"loss_type {args.loss_type!r} divides by its own length"
            if args.loss_type in PER_SEQUENCE_MEAN
            else f"vllm_importance_sampling_mode {mode!r} reweights"
        )
        yield (
            f"{name} averages plain rewards, but {cause} each trajectory, so shared tokens would not cancel. "
            "Use loss_type dapo, dr_grpo or cispo with a token-level correction, or another estimator."
        )


def _cancellation(args: "GRPOConfig", strategies: Strategies) -> Iterator[str]:
    claims = [part for part in strategies.all if part.traits.cancels_shared_tokens]
    weight = strategies.token_weight
    mode = args.vllm_importance_sampling_mode
    corrected = args.use_vllm and args.vllm_importance_sampling_correction and mode.startswith("sequence")
    for part in claims:
        if corrected and part.kind == COEFFICIENT:
            yield (
                f"{_described(part)} with vllm_importance_sampling_mode {mode!r}: it multiplies each trajectory once "
                "more after the coefficient was made to cancel. Use token_truncate or token_mask."
            )
        if args.off_policy_mask_threshold is not None:
            yield (
                f"{_described(part)} with off_policy_mask_threshold = {args.off_policy_mask_threshold:g}: it drops "
                "responses with a negative advantage only, and what is left of a group does not cancel (residuals of "
                "0.44 to 0.47 were measured). Leave off_policy_mask_threshold out."
            )
        split = args.gradient_accumulation_steps > 1 and args.per_device_train_batch_size % args.num_generations
        if weight is not None and weight.traits.depends_on_the_cut and split:
            yield (
                f"{_described(part)} with {_described(weight)} over {args.gradient_accumulation_steps} micro-batches: "
                "its weights depend on the rows beside a response in its micro-batch, so the same token weighs "
                "differently in two of them and would not cancel. Use gradient_accumulation_steps: 1, a "
                "per_device_train_batch_size that holds whole groups, or a weight that is a function of one token."
            )


def _coefficient(args: "GRPOConfig", strategies: Strategies) -> Iterator[str]:
    part, estimator = strategies.coefficient, strategies.advantage
    if part is None:
        return
    if args.loss_type != "cispo":
        yield (
            f"{_described(part)} with loss_type {args.loss_type!r}: a coefficient is what multiplies A ∇log π, and "
            "TRL's cispo alone leaves that place free. Write loss_type: cispo (its own cap is taken back)."
        )
    if args.importance_sampling_level != "token":
        yield (
            f"{_described(part)} with importance_sampling_level {args.importance_sampling_level!r}: coefficients "
            "replace the ratio of each token. Leave importance_sampling_level out."
        )
    if part.traits.needs_sequence_advantages and estimator is not None and estimator.token_level:
        yield (
            f"{_described(part)} weighs whole responses by their advantage, but {_described(estimator)} gives each "
            "token its own. Use an estimator with one advantage a response, such as grpo or dr_grpo."
        )


def _whole_groups(args: "GRPOConfig", strategies: Strategies) -> Iterator[str]:
    kept, group_size, rows = strategies.keep_groups, args.num_generations, args.per_device_train_batch_size
    if kept == "off":
        return
    asking = [_described(part) for part in strategies.all if part.traits.needs_whole_groups is not None]
    cause = f"{' and '.join(asking)} needs" if asking else "keep_groups asks for"
    together = math.gcd(args.steps_per_generation, args.gradient_accumulation_steps)
    if kept == "forward" and rows % group_size:
        yield (
            f"{cause} whole groups in every forward pass, but a micro-batch holds {rows} rows "
            f"(per_device_train_batch_size), no multiple of the {group_size} responses of a group (num_generations). "
            f"Write per_device_train_batch_size: {max(1, round(rows / group_size)) * group_size}."
        )
    elif kept == "step" and (rows * together) % group_size:
        yield (
            f"{cause} whole groups in every optimizer step, but on each process a step holds {rows * together} rows of "
            f"one rollout batch (per_device_train_batch_size {rows} × {together} micro-batches), no multiple of the "
            f"{group_size} responses of a group (num_generations). Make it one, or write keep_groups: off, under which "
            "groups are scattered over steps."
        )


def _passes(args: "GRPOConfig", strategies: Strategies) -> Iterator[str]:
    num_passes = strategies.schedule.num_passes
    if num_passes == 1:
        return
    schedule = _described(strategies.update_schedule)
    if args.steps_per_generation % args.gradient_accumulation_steps != 0:
        yield (
            f"{schedule}: a pass is {args.steps_per_generation} micro-batches (steps_per_generation), which is no "
            f"whole number of optimizer steps of {args.gradient_accumulation_steps} (gradient_accumulation_steps), so "
            "two passes would share a step. Make steps_per_generation a multiple of gradient_accumulation_steps."
        )
    if args.importance_sampling_level == "sequence" and (args.loss_type not in DETACHED or args.beta != 0.0):
        yield (
            f"{schedule} with importance_sampling_level 'sequence': the gradient of a trajectory's ratio reaches every "
            "token of it, so the passes would not isolate theirs. Use importance_sampling_level: token"
            f"{', or beta: 0.0' if args.loss_type in DETACHED else ''}."
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


def check_cut(args: "GRPOConfig", keep_groups: str) -> None:
    """Refuse a cut over all ranks where the rows of a rank cannot be shared out evenly over the optimizer steps.

    Raises:
        PreflightError: with the number that does not divide.
    """
    steps, accumulated = args.steps_per_generation, args.gradient_accumulation_steps
    rows = steps * args.per_device_train_batch_size
    units, what = (rows, "rows") if keep_groups == "off" else (rows // args.num_generations, "groups")
    updates = max(1, steps // accumulated)
    if steps % accumulated or units % updates:
        raise PreflightError(
            f"cut: over_all_ranks, but each process's {units} {what} of a rollout batch cannot be shared out evenly "
            f"over {steps / accumulated:g} optimizer steps. Choose prompts_per_rollout so that they can, or write cut: "
            "by_rank."
        )
