"""Which settings are exact together: one table of rules, asked before a GPU is paid for.

Rules ask what a strategy is (its signals, traits, what it returned on the tiny example), never what it is called. What
a setting would silently change is refused, not approximated; where TRL's own way gives the same result at a higher
cost (`REASONS`), it is taken.
"""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from torch import nn

from evenkeel.errors import Refusal, Rule, Said, rule
from evenkeel.trainer.algorithms.contract import COEFFICIENT
from evenkeel.trainer.algorithms.registry import Strategy
from evenkeel.trainer.algorithms.results import max_rounds
from evenkeel.trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN
from evenkeel.trainer.algorithms.strategies import Strategies
from evenkeel.trainer.algorithms.trial import GROUP_SIZE, separable
from evenkeel.trainer.step.options import Schedule, Speed

if TYPE_CHECKING:
    from trl import GRPOConfig

DETACHED = ("cispo", "vespo")
"""Loss types whose ratio is under stop-gradient, so that each token receives its own gradient at sequence level too."""


@dataclass(frozen=True)
class Loaded:
    """What only the loaded model, the data and the reward functions say.

    Attributes:
        own_generation: the argument by which completions are more than one plain answer to a row, if one is given.
        has_router_loss: the loss-balancing loss of a Mixture-of-Experts model is trained.
        rope_type: how rotary positions are computed; ``None`` = the model has none.
        varies: why the same weights answer differently from one pass to the next, if they do.
        has_plain_cache: its cache is the keys and values of each text token.
        is_sharded: no process holds all weights.
        image_column: a column of images beside the prompts, if there is one.
        turn_columns: columns of turns that the environments leave; ``None`` = not known, they are not of a run file.
        unshareable: why rows cannot share their prompt's forward pass, if they cannot; looked for where it is asked.
    """

    own_generation: str | None = None
    has_router_loss: bool = False
    is_vlm: bool = False
    rope_type: str | None = None
    varies: str | None = None
    has_plain_cache: bool = True
    is_sharded: bool = False
    image_column: str | None = None
    turn_columns: frozenset[str] | None = None
    unshareable: str | None = None


@dataclass(frozen=True)
class Settings:
    """What the rules are asked about; ``drop_in`` = no strategy was asked for: nothing that TRL accepts is refused."""

    args: "GRPOConfig"
    strategies: Strategies
    speed: Speed = Speed()
    cut: Literal["by_rank", "over_all_ranks"] = "by_rank"
    has_decodings: bool = False
    drop_in: bool = False
    loaded: Loaded = Loaded()

    @property
    def is_on_policy(self) -> bool:
        """Whether every rollout batch is trained in one optimizer step by the policy that wrote it: the ratio is 1."""
        in_one_step = Schedule.of(self.args, self.strategies.schedule.num_passes).is_on_policy
        return in_one_step and self.speed.staleness == 0

    @property
    def corrects_engine(self) -> bool:
        """Whether TRL corrects for the difference between vLLM's policy and its own."""
        args = self.args
        return bool(args.use_vllm and args.vllm_importance_sampling_correction and self.speed.staleness == 0)

    @property
    def sequence_mode(self) -> str | None:
        """The mode of a correction that weighs whole trajectories, if there is one."""
        mode = self.args.vllm_importance_sampling_mode
        return mode if self.corrects_engine and mode.startswith("sequence") else None

    @property
    def several_rounds(self) -> list[str]:
        """A prompt sampler that generates more than once a rollout batch."""
        sampler = self.strategies.prompt_sampler
        return [] if sampler is None or max_rounds(sampler) == 1 else [_described(sampler)]


Option = Literal["microbatches", "skip_old_logps", "shared_prompts", "generation", "overlap_generation"]
SWITCHES: tuple[Option, ...] = get_args(Option)
"""Options of `Speed` that the code takes where they are exact; the variable EVENKEEL_OFF names, with commas between,
which are then not taken (for a debugger)."""

RULES: list[Rule] = []
"""All of them, in the order in which their messages are shown; asked of the ``arguments``, of the ``environments``, of
which a run file's are known before a model is loaded, or of the ``model``."""


def problems_of(settings: Settings, option: Option) -> list[str]:
    """Why ``option`` would not be exact, or is off by EVENKEEL_OFF: TRL's own way is then taken."""
    off = ["EVENKEEL_OFF names it"] if option in switched_off() else []
    return [*off, *REASONS[option](settings)]


def switched_off() -> set[str]:
    """What the variable EVENKEEL_OFF takes away.

    Raises:
        Refusal: it has a name that is none of `SWITCHES`.
    """
    names = {name.strip() for name in os.environ.get("EVENKEEL_OFF", "").split(",")} - {""}
    if unknown := names.difference(SWITCHES):
        what = f"EVENKEEL_OFF = {', '.join(sorted(unknown))}: its names are {', '.join(SWITCHES)}."
        raise Refusal(what, code="unknown-switch")
    return names


def check_combination(
    args: "GRPOConfig", strategies: Strategies, speed: Speed = Speed(), *, drop_in: bool = False
) -> None:
    """Refuse settings whose result would not be what their names say, before a model is loaded.

    Raises:
        Refusal: naming every combination found, with the way out.
    """
    switched_off()
    refuse(Settings(args, strategies, speed, drop_in=drop_in), "arguments")


def check_turns(
    args: "GRPOConfig", strategies: Strategies, speed: Speed, own_generation: str | None, turn_columns: frozenset[str]
) -> None:
    """Refuse what does not go with the environments and tools of a run file, or without any; see `Loaded`.

    Raises:
        Refusal: naming every combination found, with the way out.
    """
    loaded = Loaded(own_generation=own_generation, turn_columns=turn_columns)
    refuse(Settings(args, strategies, speed, loaded=loaded), "environments")


def refuse(settings: Settings, *moments: str) -> None:
    """
    Raises:
        Refusal: a rule of those moments has a message; all of them, a paragraph each.
    """
    asked = [each for each in RULES if each.moment in moments]
    if problems := [problem for each in asked for problem in each.problems(settings)]:
        raise Refusal(problems=problems)


def leaves_advantages_to_trl(args: "GRPOConfig") -> bool:
    """Whether TRL is asked to scale or aggregate rewards in its own way."""
    return args.scale_rewards != "group" or args.multi_objective_aggregation != "sum_then_normalize"


def drops(module: nn.Module) -> bool:
    """Whether a module leaves out numbers at random while it trains."""
    attention = bool(getattr(module, "attention_dropout", 0.0))
    return attention or (isinstance(module, nn.Dropout) and module.p > 0)


def divides_over_ranks(args: "GRPOConfig", keep_groups: str) -> bool:
    """Whether each rank's rows of a rollout batch, or its groups, can be shared out evenly over its optimizer steps."""
    steps, accumulated = args.steps_per_generation, args.gradient_accumulation_steps
    rows = steps * args.per_device_train_batch_size
    units = rows if keep_groups == "off" else rows // args.num_generations
    return steps % accumulated == 0 and units % (steps // accumulated) == 0


def rope_type(config: Any) -> str | None:
    """How a model computes rotary positions; ``None`` where it has none."""
    parameters = getattr(config, "rope_parameters", None)
    if not parameters:
        return None
    kinds = parameters if "rope_type" in parameters else next(iter(parameters.values()), {})
    return kinds.get("rope_type") if isinstance(kinds, dict) else None


def _described(part: Strategy) -> str:
    return f"{part.kind} {part.name!r}"


# Strategies and TRL's settings


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
        schedule = _described(strategies.update_schedule)
        yield f"num_iterations = {args.num_iterations}: {schedule} makes its own passes. Leave it out."


@rule(RULES, "trl.top_p trl.top_k trl.min_p trl.repetition_penalty trl.generation_kwargs")
def _sampling(settings: Settings) -> Said:
    """Sampling from a changed distribution with an importance ratio."""
    args = settings.args
    if settings.drop_in or (settings.is_on_policy and not settings.corrects_engine):
        return
    plain = {"top_p": (1.0,), "top_k": (0, -1, None), "min_p": (0.0, None), "repetition_penalty": (1.0,)}
    plain |= dict.fromkeys(("presence_penalty", "frequency_penalty"), (0.0, None)) | {
        "temperature": (args.temperature,)
    }
    given = {name: getattr(args, name, None) for name in plain} | (args.generation_kwargs or {})
    if changed := {name: given[name] for name, usual in plain.items() if given[name] not in usual}:
        written = ", ".join(f"{name} = {value:g}" for name, value in changed.items())
        yield (
            f"{written}: completions would not be drawn from π_old, by which the importance ratio divides. Leave it "
            "out, or train each rollout batch in one optimizer step without a correction."
        )


@rule(RULES, "trl.importance_sampling_level algorithm.advantage algorithm.token_weight")
def _token_level(settings: Settings) -> Said:
    """A strategy that tells tokens apart with importance_sampling_level sequence."""
    args, strategies = settings.args, settings.strategies
    if args.importance_sampling_level != "sequence" or args.loss_type in DETACHED:
        return
    estimator = strategies.advantage
    token_level = [_described(estimator)] if estimator is not None and estimator.token_level else []
    token_level += [_described(strategies.token_weight)] if strategies.token_weight is not None else []
    for strategy in token_level:
        yield (
            f"{strategy} with importance_sampling_level 'sequence': every token would receive the response's average. "
            "Use importance_sampling_level: token."
        )


@rule(RULES, "algorithm.advantage trl.loss_type trl.importance_sampling_level trl.off_policy_mask_threshold")
def _trajectory_weights(settings: Settings) -> Said:
    """A baseline made for one weighting of trajectories with a loss that weighs them otherwise."""
    args, estimator = settings.args, settings.strategies.advantage
    if estimator is None:
        return
    if estimator.token_level and args.off_policy_mask_threshold is not None:
        yield f"{_described(estimator)} with off_policy_mask_threshold: it would drop parts of responses. Leave it out."
    name, known = _described(estimator), PER_SEQUENCE_MEAN | ONE_DENOMINATOR
    matches = "sequence_weights" in estimator.signals
    if matches and args.loss_type not in known:
        yield (
            f"{name} needs the loss's weight of each trajectory, which is not known beforehand under loss_type "
            f"{args.loss_type!r}. Use one of {', '.join(sorted(known))}."
        )
    if matches and args.importance_sampling_level == "sequence" and not settings.is_on_policy:
        yield (
            f"{name} with importance_sampling_level 'sequence': the trajectory's ratio changes after the first "
            "optimizer step. Use importance_sampling_level: token, or one optimizer step per rollout batch."
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
    for part in [part for part in settings.strategies.all if part.traits.cancels_shared_tokens]:
        if settings.sequence_mode and part.kind == COEFFICIENT:
            yield (
                f"{_described(part)} with vllm_importance_sampling_mode {settings.sequence_mode!r}: trajectories would "
                "be weighed once more. Use token_truncate or token_mask."
            )
        if args.off_policy_mask_threshold is not None:
            yield f"{_described(part)} with off_policy_mask_threshold: what is left does not cancel. Leave it out."
        split = args.gradient_accumulation_steps > 1 and args.per_device_train_batch_size % args.num_generations
        if weight is not None and weight.traits.depends_on_the_cut and split:
            yield (
                f"{_described(part)} with {_described(weight)}: the same token weighs differently in two micro-batches "
                "of a group. Use a per_device_train_batch_size that holds whole groups."
            )


@rule(RULES, "algorithm.coefficient trl.loss_type trl.importance_sampling_level algorithm.advantage")
def _coefficient(settings: Settings) -> Said:
    """A coefficient with a loss or ratio that leaves it no place."""
    args, part, estimator = settings.args, settings.strategies.coefficient, settings.strategies.advantage
    if part is None:
        return
    if args.loss_type != "cispo":
        yield f"{_described(part)} with loss_type {args.loss_type!r}: only cispo leaves it a place. Write it."
    if args.importance_sampling_level != "token":
        yield f"{_described(part)} replaces the ratio of each token. Leave importance_sampling_level out."
    if part.traits.needs_sequence_advantages and estimator is not None and estimator.token_level:
        yield (
            f"{_described(part)} weighs whole responses, and {_described(estimator)} gives each token its own "
            "advantage. Use one such as grpo."
        )


@rule(RULES, "algorithm.keep_groups trl.per_device_train_batch_size trl.num_generations")
def _whole_groups(settings: Settings) -> Said:
    """keep_groups with a batch that does not hold whole groups."""
    args, strategies = settings.args, settings.strategies
    kept, group_size, rows = strategies.keep_groups, args.num_generations, args.per_device_train_batch_size
    asking = [_described(part) for part in strategies.all if part.traits.needs_whole_groups is not None]
    cause = f"{' and '.join(asking) or 'keep_groups'} needs whole groups of {group_size} (num_generations)"
    together = math.gcd(args.steps_per_generation, args.gradient_accumulation_steps)
    if kept == "forward" and rows % group_size:
        yield (
            f"{cause} in every forward pass, which holds {rows} rows. "
            f"Write per_device_train_batch_size: {max(1, round(rows / group_size)) * group_size}."
        )
    elif kept == "step" and (rows * together) % group_size:
        yield (
            f"{cause} in every optimizer step, which holds {rows} × {together} rows of a rollout batch on each "
            "process. Make it a multiple, or write keep_groups: off."
        )


@rule(
    RULES, "algorithm.update_schedule trl.steps_per_generation trl.importance_sampling_level trl.entropy_coef trl.beta"
)
def _passes(settings: Settings) -> Said:
    """An update schedule of several passes with a loss whose passes would not be isolated."""
    args, strategies = settings.args, settings.strategies
    if strategies.schedule.num_passes == 1:
        return
    schedule = _described(strategies.update_schedule)
    if args.steps_per_generation % args.gradient_accumulation_steps != 0:
        yield f"{schedule}: passes share a step. Make steps_per_generation a multiple of gradient_accumulation_steps."
    if args.importance_sampling_level == "sequence" and (args.loss_type not in DETACHED or args.beta != 0.0):
        yield (
            f"{schedule} with importance_sampling_level 'sequence': its ratio reaches the tokens of every pass. "
            f"Use importance_sampling_level: token{', or beta: 0.0' if args.loss_type in DETACHED else ''}."
        )
    if args.entropy_coef != 0.0 or args.use_adaptive_entropy:
        yield f"{schedule}: every pass would add the entropy bonus. Leave entropy_coef and use_adaptive_entropy out."
    if args.beta == 0.0:
        return
    if args.loss_type not in ONE_DENOMINATOR:
        yield (
            f"{schedule} with beta = {args.beta} and loss_type {args.loss_type!r}, which divides by a pass's tokens. "
            f"Use one of {', '.join(sorted(ONE_DENOMINATOR))}, or beta: 0.0."
        )
    if args.top_entropy_quantile < 1.0 or args.off_policy_mask_threshold is not None:
        yield (
            f"{schedule} with beta = {args.beta}: top_entropy_quantile and off_policy_mask_threshold would see a pass "
            "alone. Leave them out, or write beta: 0.0."
        )


@rule(RULES, "trl.fp16 trl.use_cpu")
def _fp16_on_a_cpu(settings: Settings) -> Said:
    """fp16 on a CPU."""
    if settings.args.fp16 and settings.args.device.type == "cpu" and not settings.drop_in:
        yield "trl.fp16 = True on a CPU, where accelerate computes in float32. Leave it out."


@rule(RULES, "algorithm.update_schedule trl.router_aux_loss_coef", "model")
def _passes_of_a_router(settings: Settings) -> Said:
    """An update schedule of several passes with a router's load-balancing loss."""
    if settings.strategies.schedule.num_passes > 1 and settings.loaded.has_router_loss:
        schedule = _described(settings.strategies.update_schedule)
        yield f"{schedule}: every pass would add the router's loss. Write router_aux_loss_coef: 0.0."


@rule(RULES, "algorithm.teacher algorithm.revision algorithm.advantage algorithm.token_weight", "environments")
def _plain_turns(settings: Settings) -> Said:
    """A revision or a teacher with tools, environments or a rollout function."""
    own = settings.loaded.own_generation
    asked = [*settings.strategies.taught, *["revision"] * (settings.strategies.revision is not None)]
    if asked and own:
        yield f"{' and '.join(asked)} with {own}: only plain completions of a text are written or scored again."


@rule(RULES, "algorithm.token_weight algorithm.advantage trl.num_generations")
def _siblings_to_contrast(settings: Settings) -> Said:
    """teacher_contrast in groups of two."""
    count = settings.args.num_generations
    if "teacher_contrast" in settings.strategies.taught and count < 3:
        yield f"teacher_contrast with num_generations = {count}: it needs a right and a wrong sibling. Write 3 or more."


@rule(RULES, "algorithm.prompt_sampler algorithm.revision algorithm.teacher evaluation data", "model")
def _images(settings: Settings) -> Said:
    """A model of images, a column of images or a rollout function with what answers or scores prompts of text."""
    loaded, strategies = settings.loaded, settings.strategies
    others = ["decodings"] * settings.has_decodings + ["revision"] * (strategies.revision is not None)
    asked = [*strategies.taught] if loaded.is_vlm else []
    if loaded.image_column:
        asked += [*others, *settings.several_rounds]
    elif loaded.own_generation == "rollout_func" or (loaded.own_generation and loaded.is_vlm):
        asked += settings.several_rounds
    for each in asked:
        what = loaded.image_column or loaded.own_generation or "a model of images"
        yield f"{each} with {what}: images, and columns of a rollout function, would be lost. Leave one of the two out."


# Generation

_PLAIN = {"use_vllm": False, "use_transformers_continuous_batching": False, "cache_implementation": None}


def _not_compact(settings: Settings) -> Iterator[str]:
    """Another way of decoding than transformers' own sampling with a plain cache."""
    args, loaded = settings.args, settings.loaded
    for name, plain in _PLAIN.items():
        if getattr(args, name) != plain:
            yield f"{name} is {getattr(args, name)!r}"
    if args.generation_kwargs:
        yield "generation_kwargs may ask for another way of decoding"
    if loaded.is_sharded:
        yield "the parameters are sharded"
    elif loaded.is_vlm or not loaded.has_plain_cache:
        yield "the model's cache is not the keys and values of each text token"


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


# Rollout batches that are written ahead of training


@rule(RULES, "speed.staleness trl.use_vllm algorithm.advantage algorithm.token_weight algorithm.coefficient")
def _entropies_of_an_engine(settings: Settings) -> Said:
    """staleness and vLLM with a strategy that asks for the entropies of π_old, Σ π_old², or what a teacher scores."""
    if settings.speed.staleness and settings.args.use_vllm:
        for part in settings.strategies.all:
            for signal in {"entropies", "sum_pi_squared", *settings.strategies.taught} & {*part.signals}:
                yield (
                    f"{_described(part)} asks for {signal}, which vLLM does not give of its policy. Write "
                    "staleness: 0, or generate with transformers."
                )


def _not_overlapped(settings: Settings) -> Iterator[str]:
    """What is not one plain request to a server, whose answer training does not change."""
    args, strategies, loaded = settings.args, settings.strategies, settings.loaded
    if settings.speed.staleness == 0 or not args.use_vllm or args.vllm_mode != "server":
        yield "only with staleness and a vLLM server"
    for each in settings.several_rounds + ["revision"] * (strategies.revision is not None):
        yield f"{each} generates again by what was scored"
    if strategies.advantage is not None and strategies.advantage.traits.draws_at_random:
        yield f"{_described(strategies.advantage)} draws at random"
    if other := loaded.own_generation or loaded.image_column:
        yield f"only plain completions of a text, and there is {other}"


# Where π_old is scored although the loss's own pass would do


def _not_skipped(settings: Settings) -> Iterator[str]:
    """A strategy that needs π_old before the loss is computed, or passes that differ."""
    strategies = settings.strategies
    if strategies.revision is not None:
        yield "revisions are generated after the scoring"
    if (estimator := strategies.advantage) is not None:
        asked = {"old_logps", "entropies", "sum_pi_squared"} | (
            {"sequence_weights"} if settings.sequence_mode else set()
        )
        if found := asked & {*estimator.signals}:
            yield f"advantage {estimator.name!r} asks for {' and '.join(sorted(found))}"
    if settings.loaded.varies:
        yield settings.loaded.varies


# Where micro-batches stay as TRL cuts them

_LENGTH_DEPENDENT = ("dynamic", "longrope")


def _not_planned(settings: Settings) -> Iterator[str]:
    """A loss, a strategy or a model that looks at all tokens of a micro-batch."""
    args, strategies, loaded = settings.args, settings.strategies, settings.loaded
    together = GROUP_SIZE if strategies.keep_groups == "forward" else 1  # rows of the tiny example
    if args.top_entropy_quantile < 1.0:
        yield f"top_entropy_quantile = {args.top_entropy_quantile:g} goes by the tokens of a micro-batch"
    if args.entropy_coef != 0.0 or args.use_adaptive_entropy:
        yield "the entropy bonus is a mean over the tokens of a micro-batch"
    if args.loss_type == "bnpo" and args.beta != 0.0:
        yield "loss_type 'bnpo' divides the KL term by the tokens of a micro-batch"
    for part in (strategies.token_weight, strategies.coefficient):
        if part is not None and part.traits.draws_at_random:
            yield f"{_described(part)} draws at random"
        elif part is not None and (part.traits.depends_on_the_cut or not separable(part, together)):
            yield f"{_described(part)} changes with the other rows of a micro-batch"
    if loaded.has_router_loss:
        yield "the router's loss is a mean over the tokens of a micro-batch"
    if loaded.is_vlm:
        yield "images are not cut with their rows"
    if loaded.rope_type in _LENGTH_DEPENDENT:
        yield f"rope type {loaded.rope_type!r} goes by the length of the padded batch"


def _not_shared(settings: Settings) -> Iterator[str]:
    """A model that would compute something else in one sequence than in many."""
    loaded = settings.loaded
    if settings.speed.microbatches == "trl" or problems_of(settings, "microbatches"):
        yield "only planned micro-batches share prompts"
    yield from (reason for reason in (loaded.unshareable, loaded.varies) if reason)
    if loaded.image_column:
        yield f"the column {loaded.image_column!r} holds images"


REASONS: dict[Option, Callable[[Settings], Iterator[str]]] = {
    "microbatches": _not_planned,
    "skip_old_logps": _not_skipped,
    "shared_prompts": _not_shared,
    "generation": _not_compact,
    "overlap_generation": _not_overlapped,
}
"""Option → why it would not be exact."""
