"""Refuses settings that do not work together, where one would silently change the meaning of another.

Rules look at a strategy's signals, traits and results on the tiny example, never at its name.
"""

from typing import TYPE_CHECKING, Any

from evenkeel.errors import Refusal, Rule, Said, rule
from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT
from evenkeel.trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN
from evenkeel.trainer.algorithms.strategies import Strategies
from evenkeel.trainer.step.choices import Settings, described, problems_of, switched_off
from evenkeel.trainer.step.options import Schedule, Speed

if TYPE_CHECKING:
    from trl import GRPOConfig

DETACHED = ("cispo", "vespo")
"""Loss types whose ratio is under stop-gradient, so that each token receives its own gradient at sequence level too."""
RULES: list[Rule] = []
"""All rules, in the order of their messages; each applies to the ``arguments``, or once the ``model`` is loaded."""


def check_combination(
    args: "GRPOConfig", strategies: Strategies, speed: Speed = Speed(), *, drop_in: bool = False
) -> None:
    """Refuse settings that do not work together, as far as that is known before a model is loaded."""
    switched_off()
    refuse(Settings(args, strategies, speed, drop_in=drop_in), "arguments")


def refuse(settings: Settings, moment: str) -> None:
    """Raise a `Refusal` with all messages of the rules of that moment, if there are any."""
    asked = [each for each in RULES if each.moment == moment]
    if problems := [problem for each in asked for problem in each.problems(settings)]:
        raise Refusal(problems=problems)


def leaves_advantages_to_trl(args: "GRPOConfig") -> bool:
    """Whether ``args`` select a way of TRL's to scale or aggregate rewards."""
    return args.scale_rewards != "group" or args.multi_objective_aggregation != "sum_then_normalize"


@rule(RULES, "trl.scale_rewards trl.multi_objective_aggregation trl.num_iterations")
def _owned_settings(settings: Settings) -> Said:
    """Settings of TRL that an advantage estimator or update schedule takes over."""
    args, strategies = settings.args, settings.strategies
    if strategies.advantage is not None and args.scale_rewards != "group":
        instead = "dr_grpo" if args.scale_rewards == "none" else "reinforce_pp"
        yield f"scale_rewards = {args.scale_rewards!r}: the estimator decides the scale. Write advantage: {instead}."
    if strategies.advantage is not None and args.multi_objective_aggregation != "sum_then_normalize":
        given = args.multi_objective_aggregation
        yield f"multi_objective_aggregation = {given!r}: the estimator decides it. Write advantage: gdpo."
    if strategies.schedule.num_passes > 1 and args.num_iterations != 1:
        schedule = described(strategies.update_schedule)
        yield f"num_iterations = {args.num_iterations}: {schedule} makes its own passes. Leave it out."


PLAIN_SAMPLING: dict[str, Any] = {
    **dict.fromkeys(["top_p", "typical_p", "top_h", "repetition_penalty", "guidance_scale"], 1),
    **dict.fromkeys(["top_k", "min_p", "epsilon_cutoff", "eta_cutoff", "presence_penalty", "frequency_penalty"], 0),
    **dict.fromkeys(["no_repeat_ngram_size", "min_length", "min_new_tokens", "min_tokens"], 0),
    **dict.fromkeys(["bad_words_ids", "bad_words", "sequence_bias", "logit_bias", "allowed_token_ids"]),
}
"""Options of both engines → the value that keeps the policy's distribution; transformers reads ``top_k`` null as 50."""


@rule(RULES, "trl.generation_kwargs trl.min_p", "model")
@rule(RULES, "trl.top_p trl.top_k trl.min_p trl.repetition_penalty trl.generation_kwargs")
def _sampling(settings: Settings) -> Said:
    """Sampling from a changed distribution with an importance ratio."""
    args = settings.args
    if settings.drop_in or (settings.is_on_policy and not settings.corrects_engine):
        return
    plain = {**PLAIN_SAMPLING, "temperature": args.temperature}
    given = {**plain, "top_k": 0 if args.use_vllm else 50, **settings.loaded.sampling}
    for asked in (vars(args), args.generation_kwargs or {}):
        given |= {name: asked[name] for name in plain if asked.get(name) is not None}
    if given["top_k"] == -1:  # vLLM's word for all
        given["top_k"] = 0
    if changed := [name for name in plain if given[name] != plain[name]]:
        written = ", ".join(f"{name} = {given[name]!r}" for name in changed)
        yield (
            f"{written}: completions would not be drawn from π_old, by which the importance ratio divides. "
            "Leave it out (generation_kwargs overrule generation_config.json), or train each rollout batch in one "
            "optimizer step without a correction."
        )


@rule(RULES, "trl.importance_sampling_level algorithm.advantage algorithm.token_weight")
def _token_level(settings: Settings) -> Said:
    """A token-level strategy with importance_sampling_level sequence."""
    args, strategies = settings.args, settings.strategies
    if args.importance_sampling_level != "sequence" or args.loss_type in DETACHED:
        return
    estimator = strategies.advantage
    token_level = [described(estimator)] if estimator is not None and estimator.token_level else []
    token_level += [described(strategies.token_weight)] if strategies.token_weight is not None else []
    for strategy in token_level:
        yield (
            f"{strategy} with importance_sampling_level 'sequence': every token would receive the response's average. "
            "Use importance_sampling_level: token."
        )


@rule(RULES, "algorithm.advantage trl.loss_type trl.importance_sampling_level")
def _trajectory_weights(settings: Settings) -> Said:
    """A baseline made for one weighting of trajectories with a loss that weighs them otherwise."""
    args, estimator = settings.args, settings.strategies.advantage
    if estimator is None:
        return
    name, known = described(estimator), PER_SEQUENCE_MEAN | ONE_DENOMINATOR
    moves = args.importance_sampling_level == "sequence" and not settings.is_on_policy
    if "sequence_weights" in estimator.signals and (moves or args.loss_type not in known):
        yield (
            f"{name} needs the loss's weight of each trajectory beforehand. Use loss_type {', '.join(sorted(known))}, "
            "with importance_sampling_level: token or one optimizer step per rollout batch."
        )
    if estimator.traits.needs_equal_sequence_weights:
        by_length = f"loss_type {args.loss_type!r}" if args.loss_type in PER_SEQUENCE_MEAN else None
        if cause := by_length or settings.sequence_mode:
            yield (
                f"{name} averages plain rewards, and {cause} reweights each trajectory. Use loss_type dapo, dr_grpo or "
                "cispo with a token-level correction."
            )


@rule(RULES, "algorithm.advantage algorithm.coefficient algorithm.token_weight trl.off_policy_mask_threshold")
def _cancellation(settings: Settings) -> Said:
    """A strategy whose shared tokens cancel with a setting that breaks it."""
    args, weight = settings.args, settings.strategies.token_weight
    for part in settings.strategies.all:
        by_token = part.traits.cancels_shared_tokens or (part.kind == ADVANTAGE and part.token_level)
        if by_token and args.off_policy_mask_threshold is not None:
            yield f"{described(part)} with off_policy_mask_threshold: it would drop parts of responses. Leave it out."
        if not part.traits.cancels_shared_tokens:
            continue
        if settings.sequence_mode and part.kind == COEFFICIENT:
            yield (
                f"{described(part)} with vllm_importance_sampling_mode {settings.sequence_mode!r}: trajectories would "
                "be weighed once more. Use token_truncate or token_mask."
            )
        split = args.gradient_accumulation_steps > 1 and args.per_device_train_batch_size % args.num_generations
        if weight is not None and weight.traits.depends_on_the_cut and split:
            yield (
                f"{described(part)} with {described(weight)}: the same token weighs differently in two micro-batches "
                "of a group. Use a per_device_train_batch_size that holds whole groups."
            )


@rule(RULES, "algorithm.coefficient trl.loss_type trl.importance_sampling_level algorithm.advantage")
def _coefficient(settings: Settings) -> Said:
    """A coefficient with a loss or ratio that leaves it no place."""
    args, part, estimator = settings.args, settings.strategies.coefficient, settings.strategies.advantage
    if part is None:
        return
    if args.loss_type != "cispo":
        yield f"{described(part)} with loss_type {args.loss_type!r}: only cispo leaves it a place. Write it."
    if args.importance_sampling_level != "token":
        yield f"{described(part)} replaces the ratio of each token. Leave importance_sampling_level out."
    if part.traits.needs_sequence_advantages and estimator is not None and estimator.token_level:
        yield (
            f"{described(part)} weighs whole responses, and {described(estimator)} gives each token its own "
            "advantage. Use one such as grpo."
        )


@rule(RULES, "algorithm.keep_groups trl.per_device_train_batch_size trl.num_generations")
def _whole_groups(settings: Settings) -> Said:
    """keep_groups with a batch that does not hold whole groups."""
    args, strategies = settings.args, settings.strategies
    kept, group_size, rows = strategies.keep_groups, args.num_generations, args.per_device_train_batch_size
    asking = [described(part) for part in strategies.all if part.traits.needs_whole_groups is not None]
    cause = f"{' and '.join(asking) or 'keep_groups'} needs whole groups of {group_size} (num_generations)"
    in_step = rows * Schedule.of(args, 1).block
    held, place = (rows, "forward pass") if kept == "forward" else (in_step, "optimizer step")
    if kept != "off" and held % group_size:
        yield (
            f"{cause} in every {place}, which holds {held} rows of a rollout batch on each process. Make "
            f"per_device_train_batch_size = {rows} a multiple of {group_size}, or write keep_groups: off."
        )


@rule(
    RULES, "algorithm.update_schedule trl.steps_per_generation trl.importance_sampling_level trl.entropy_coef trl.beta"
)
def _passes(settings: Settings) -> Said:
    """An update schedule of several passes with a loss whose passes would not be isolated."""
    args, strategies = settings.args, settings.strategies
    if strategies.schedule.num_passes == 1:
        return
    schedule = described(strategies.update_schedule)
    if args.steps_per_generation % args.gradient_accumulation_steps != 0:
        yield f"{schedule}: passes share a step. Make steps_per_generation a multiple of gradient_accumulation_steps."
    if args.importance_sampling_level == "sequence":
        yield (
            f"{schedule} with importance_sampling_level 'sequence': its ratio reaches the tokens of every pass. "
            "Use importance_sampling_level: token."
        )
    if args.entropy_coef != 0.0 or args.use_adaptive_entropy:
        yield f"{schedule}: every pass would add the entropy bonus. Leave entropy_coef and use_adaptive_entropy out."
    chooses = args.top_entropy_quantile < 1.0 or args.off_policy_mask_threshold is not None
    if args.beta != 0.0 and (chooses or args.loss_type not in ONE_DENOMINATOR):
        yield (
            f"{schedule} with beta = {args.beta}: each pass has to have its own tokens' share of the KL term. Write "
            f"beta: 0.0, or a loss_type of {', '.join(sorted(ONE_DENOMINATOR))} without top_entropy_quantile and "
            "off_policy_mask_threshold."
        )


@rule(RULES, "algorithm.update_schedule trl.router_aux_loss_coef", "model")
def _passes_of_a_router(settings: Settings) -> Said:
    """An update schedule of several passes with a router's load-balancing loss."""
    if settings.strategies.schedule.num_passes > 1 and settings.loaded.has_router_loss:
        schedule = described(settings.strategies.update_schedule)
        yield f"{schedule}: every pass would add the router's loss. Write router_aux_loss_coef: 0.0."


@rule(RULES, "algorithm.token_weight algorithm.advantage algorithm.revision trl.num_generations")
def _siblings_to_contrast(settings: Settings) -> Said:
    """A revision or teacher_contrast with more siblings than a group has."""
    count, revision = settings.args.num_generations, settings.strategies.revision
    if revision is not None and revision.references >= count:
        yield f"revision.references = {revision.references} with num_generations = {count}: too few siblings."
    if "teacher_contrast" in settings.strategies.taught and count < 3:
        yield f"teacher_contrast with num_generations = {count}: it needs a right and a wrong sibling. Write 3 or more."


@rule(RULES, "algorithm.revision algorithm.teacher algorithm.prompt_sampler evaluation environment data", "model")
def _plain_text(settings: Settings) -> Said:
    """A strategy or decoding for plain text with images, tools, environments or a rollout function."""
    loaded, own, rounds = settings.loaded, settings.loaded.own_generation, settings.several_rounds
    scored = [*settings.strategies.taught, *["revision"] * (settings.strategies.revision is not None)]
    asked: list[str] = []
    if loaded.image_column:
        asked = [*scored, *rounds, *["decodings"] * settings.has_decodings]
    elif own:
        asked = scored + (rounds if own == "rollout_func" or loaded.is_vlm else [])
    elif loaded.is_vlm:
        asked = [*settings.strategies.taught]
    for each in asked:
        what = loaded.image_column or own or "a model of images"
        yield f"{each} with {what}: only plain completions of a text are written or scored again. Leave one out."


@rule(RULES, "common_random_numbers environment", "model")
@rule(RULES, "common_random_numbers trl.use_vllm")
def _common_noise(settings: Settings) -> Said:
    """common_random_numbers without compact generation."""
    if not settings.speed.common_random_numbers:
        return
    reasons = ["a rollout function draws the tokens"] * (settings.loaded.own_generation == "rollout_func")
    reasons += ["generation = 'trl'"] * (settings.speed.generation == "trl")
    if reasons := reasons or problems_of(settings, "generation"):
        yield f"common_random_numbers = true needs transformers' plain sampling, and {reasons[0]}. Leave one out."


@rule(RULES, "speed.staleness trl.use_vllm algorithm.advantage algorithm.token_weight algorithm.coefficient")
def _entropies_of_an_engine(settings: Settings) -> Said:
    """staleness and vLLM with a strategy that asks for the entropies of π_old, Σ π_old², or what a teacher scores."""
    if settings.speed.staleness and settings.args.use_vllm:
        for part in settings.strategies.all:
            for signal in {"entropies", "sum_pi_squared", *settings.strategies.taught} & {*part.signals}:
                yield (
                    f"{described(part)} asks for {signal}, which vLLM does not give of its policy. Write "
                    "staleness: 0, or generate with transformers."
                )
