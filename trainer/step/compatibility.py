"""Which settings are exact together: one table of rules, asked before a GPU is paid for.

Each rule names the settings that do not go together, why not, and what to write instead. Rules ask what a strategy is
(its signals, traits, what it returned on the tiny example), never what it is called. What a setting would silently
change is refused, not approximated; where TRL's own way gives the same result at a higher cost, a rule that falls back
takes it, with a warning.
"""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

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
        has_positions: the training rows can be read by position; not so for streamed data.
        same_names: names that several reward functions share.
        image_column: a column of images beside the prompts, if there is one.
        turn_columns: columns of turns that the environments leave; ``None`` = not known, they are not of a run file.
        unusable_references: why a teacher cannot be shown the gold answers, if it cannot; looked for where one is.
        unshareable: why rows cannot share their prompt's forward pass, if they cannot; looked for where it is asked.
    """

    own_generation: str | None = None
    has_router_loss: bool = False
    is_vlm: bool = False
    rope_type: str | None = None
    varies: str | None = None
    has_plain_cache: bool = True
    is_sharded: bool = False
    has_positions: bool = True
    same_names: tuple[str, ...] = ()
    image_column: str | None = None
    turn_columns: frozenset[str] | None = None
    unshareable: str | None = None
    unusable_references: str | None = None


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


Option = Literal["microbatches", "skip_old_logps", "shared_prompts", "generation", "overlap_generation"]
SWITCHES: dict[str, Option] = {
    "planned": "microbatches",
    "skipping": "skip_old_logps",
    "sharing": "shared_prompts",
    "compact": "generation",
    "overlap": "overlap_generation",
}
"""What the variable EVENKEEL_OFF can name, with commas between, and what is then not taken (for a debugger)."""

RULES: list[Rule] = []
"""All of them, in the order in which their messages are shown; asked of the ``arguments``, of the ``environments``, of
which a run file's are known before a model is loaded, or of the ``model``."""
REASONS: dict[Option, list[Callable[[Settings], Iterator[str]]]] = {option: [] for option in SWITCHES.values()}
"""Option → what says why it would not be exact; TRL's own way is then taken, with a warning."""


def gives_up(option: Option) -> Callable[[Callable[[Settings], Iterator[str]]], Callable[[Settings], Iterator[str]]]:
    """Enter a generator of reasons into `REASONS`."""

    def enter(reasons: Callable[[Settings], Iterator[str]]) -> Callable[[Settings], Iterator[str]]:
        REASONS[option].append(reasons)
        return reasons

    return enter


def problems_of(settings: Settings, option: Option) -> list[str]:
    """The messages of all rules that give ``option`` up, and of EVENKEEL_OFF."""
    off = ["EVENKEEL_OFF names it"] if option in switched_off() else []
    return off + [message for reasons in REASONS[option] for message in reasons(settings)]


def switched_off() -> set[Option]:
    """What the variable EVENKEEL_OFF takes away.

    Raises:
        Refusal: it has a name that is none of `SWITCHES`.
    """
    names = {name.strip() for name in os.environ.get("EVENKEEL_OFF", "").split(",")} - {""}
    if unknown := names - SWITCHES.keys():
        what = f"EVENKEEL_OFF = {', '.join(sorted(unknown))}: its names are {', '.join(SWITCHES)}."
        raise Refusal(what, code="unknown-switch")
    return {SWITCHES[name] for name in names}


def check_combination(
    args: "GRPOConfig",
    strategies: Strategies,
    speed: Speed = Speed(),
    cut: Literal["by_rank", "over_all_ranks"] = "by_rank",
    *,
    drop_in: bool = False,
) -> None:
    """Refuse settings whose result would not be what their names say, before a model is loaded.

    Raises:
        Refusal: naming every combination found, with the way out.
    """
    switched_off()
    refuse(Settings(args, strategies, speed, cut, drop_in=drop_in), "arguments")


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


def cuts_passes(settings: Settings) -> bool:
    """Whether a row may end after the last token of the pass: nothing in its loss looks at the tokens after it."""
    args, strategies = settings.args, settings.strategies
    parts = [part for part in (strategies.token_weight, strategies.coefficient) if part is not None]
    return (
        strategies.schedule.num_passes > 1
        and args.importance_sampling_level == "token"
        and args.loss_type != "vespo"
        and args.off_policy_mask_threshold is None
        and all(separable(part, _rows_together(strategies), _FEW_TOKENS) for part in parts)
    )


def _described(part: Strategy) -> str:
    return f"{part.kind} {part.name!r}"


# Strategies and TRL's settings


@rule(RULES, "trl.scale_rewards trl.multi_objective_aggregation trl.num_iterations")
def _owned_settings(settings: Settings) -> Said:
    """Settings of TRL that an advantage estimator or update schedule takes over."""
    args, strategies = settings.args, settings.strategies
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


@rule(RULES, "trl.top_p trl.top_k trl.min_p trl.repetition_penalty trl.generation_kwargs")
def _sampling(settings: Settings) -> Said:
    """Sampling from a changed distribution with an importance ratio."""
    args = settings.args
    if settings.drop_in:
        return
    ratio = not settings.is_on_policy or settings.corrects_engine
    plain = {"top_p": (1.0,), "top_k": (0, -1, None), "min_p": (0.0, None), "repetition_penalty": (1.0,)}
    plain |= dict.fromkeys(("presence_penalty", "frequency_penalty"), (0.0, None)) | {
        "temperature": (args.temperature,)
    }
    given = {name: getattr(args, name, None) for name in plain} | (args.generation_kwargs or {})
    changed = {name: given[name] for name, usual in plain.items() if given[name] not in usual}
    if ratio and changed:
        written = ", ".join(f"{name} = {value:g}" for name, value in changed.items())
        yield (
            f"{written} with an importance ratio: completions are drawn from another distribution than π_old, whose "
            "probabilities the ratio divides by, so it would correct for the wrong one. Leave "
            f"{', '.join(changed)} out, or train each rollout batch in one optimizer step without a correction."
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
            f"{strategy} with importance_sampling_level 'sequence': the gradient of a trajectory's ratio reaches all "
            "of its tokens alike, so each would receive the average over the response and not its own. "
            "Use importance_sampling_level: token."
        )


@rule(RULES, "algorithm.advantage trl.loss_type trl.importance_sampling_level trl.off_policy_mask_threshold")
def _trajectory_weights(settings: Settings) -> Said:
    """A baseline made for one weighting of trajectories with a loss that weighs them otherwise."""
    args, strategies = settings.args, settings.strategies
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
    if matches and args.importance_sampling_level == "sequence" and not settings.is_on_policy:
        yield (
            f"{name} with importance_sampling_level 'sequence': each rollout batch is trained for more than one "
            "optimizer step, the trajectory's ratio changes after the first, and the baseline cannot follow. "
            "Use importance_sampling_level: token, or one optimizer step per rollout batch "
            "(steps_per_generation = gradient_accumulation_steps, num_iterations: 1)."
        )
    mode = args.vllm_importance_sampling_mode
    corrected = settings.corrects_engine and mode.startswith("sequence")
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


@rule(RULES, "algorithm.advantage algorithm.coefficient algorithm.token_weight trl.off_policy_mask_threshold")
def _cancellation(settings: Settings) -> Said:
    """A strategy whose shared tokens cancel with a setting that breaks it."""
    args, strategies = settings.args, settings.strategies
    claims = [part for part in strategies.all if part.traits.cancels_shared_tokens]
    weight = strategies.token_weight
    mode = args.vllm_importance_sampling_mode
    corrected = settings.corrects_engine and mode.startswith("sequence")
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


@rule(RULES, "algorithm.coefficient trl.loss_type trl.importance_sampling_level algorithm.advantage")
def _coefficient(settings: Settings) -> Said:
    """A coefficient with a loss or ratio that leaves it no place."""
    args, strategies = settings.args, settings.strategies
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


@rule(RULES, "algorithm.keep_groups trl.per_device_train_batch_size trl.num_generations")
def _whole_groups(settings: Settings) -> Said:
    """keep_groups with a batch that does not hold whole groups."""
    args, strategies = settings.args, settings.strategies
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


@rule(
    RULES, "algorithm.update_schedule trl.steps_per_generation trl.importance_sampling_level trl.entropy_coef trl.beta"
)
def _passes(settings: Settings) -> Said:
    """An update schedule of several passes with a loss whose passes would not be isolated."""
    args, strategies = settings.args, settings.strategies
    num_passes = strategies.schedule.num_passes
    if num_passes == 1:
        return
    schedule = _described(strategies.update_schedule)
    if args.steps_per_generation % args.gradient_accumulation_steps != 0:
        yield (
            f"{schedule}: a pass is {args.steps_per_generation} micro-batches (steps_per_generation), not a "
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


@rule(RULES, "algorithm.prompts_per_rollout")
def cut_over_all_ranks(settings: Settings) -> Said:
    """cut: over_all_ranks where a rank's rows cannot be shared out evenly over the optimizer steps."""
    args, keep_groups = settings.args, settings.strategies.keep_groups
    if settings.cut == "over_all_ranks" and not divides_over_ranks(args, keep_groups):
        yield (
            f"cut='over_all_ranks', but the {args.generation_batch_size} rows of a rollout batch (keep_groups "
            f"{keep_groups!r}) cannot be shared out evenly over the optimizer steps of {args.world_size} processes. "
            "Choose generation_batch_size so that they can, or write cut='by_rank'."
        )


def divides_over_ranks(args: "GRPOConfig", keep_groups: str) -> bool:
    """Whether each rank's rows of a rollout batch, or its groups, can be shared out evenly over its optimizer steps."""
    steps, accumulated = args.steps_per_generation, args.gradient_accumulation_steps
    rows = steps * args.per_device_train_batch_size
    units = rows if keep_groups == "off" else rows // args.num_generations
    return steps % accumulated == 0 and units % (steps // accumulated) == 0


@rule(RULES, "trl.fp16 trl.use_cpu")
def _fp16_on_a_cpu(settings: Settings) -> Said:
    """fp16 on a CPU."""
    if settings.args.fp16 and settings.args.device.type == "cpu" and not settings.drop_in:
        yield (
            "trl.fp16 = True, and this run is on a CPU: accelerate has no float16 there and computes everything in "
            "float32 without a word, so that the run would not be the one its settings name. Write fp16: false, and "
            "bf16: true where half precision is wanted."
        )


@rule(RULES, "algorithm.update_schedule trl.router_aux_loss_coef", "model")
def _passes_of_a_router(settings: Settings) -> Said:
    """An update schedule of several passes with a router's load-balancing loss."""
    num_passes = settings.strategies.schedule.num_passes
    if num_passes > 1 and settings.loaded.has_router_loss:
        yield (
            f"update_schedule {settings.strategies.update_schedule.name!r} with a Mixture-of-Experts model: its "
            f"load-balancing loss would be applied {num_passes} times to each batch. Set router_aux_loss_coef: 0.0."
        )


@rule(RULES, "algorithm.prompt_sampler", "model")
def _chosen_prompts(settings: Settings) -> Said:
    """A prompt sampler with streamed data, or one of several rounds with a rollout function or images."""
    sampler, own = settings.strategies.prompt_sampler, settings.loaded.own_generation
    if sampler is None:
        return
    if not settings.loaded.has_positions:
        yield (
            f"prompt_sampler {sampler.name!r} chooses rows by their position, and streamed data has none. Load the "
            "data whole, or leave prompt_sampler out."
        )
    if own and max_rounds(sampler) > 1 and (own == "rollout_func" or settings.loaded.is_vlm):
        what = "columns that the function" if own == "rollout_func" else "images that a tool"
        yield (
            f"prompt_sampler {sampler.name!r} with {own}: {what} may leave would be lost of what several rounds "
            f"generate. Leave prompt_sampler or {own} out."
        )


@rule(RULES, "algorithm.teacher algorithm.revision algorithm.advantage algorithm.token_weight", "environments")
def _plain_turns(settings: Settings) -> Said:
    """A revision or a teacher with tools, environments or a rollout function."""
    own = settings.loaded.own_generation
    asked = [*settings.strategies.taught, *["revision"] * (settings.strategies.revision is not None)]
    if asked and own:
        yield (
            f"{' and '.join(asked)} with {own}: one plain completion of a text is written or scored once more, and "
            f"here an answer has several turns, or is made by others. Choose another strategy, or leave {own} out."
        )


@rule(RULES, "algorithm.token_weight algorithm.advantage trl.num_generations")
def _siblings_to_contrast(settings: Settings) -> Said:
    """teacher_contrast in groups of two."""
    count = settings.args.num_generations
    if "teacher_contrast" in settings.strategies.taught and count < 3:
        yield (
            f"teacher_contrast with num_generations = {count}: a response is scored behind a right and a wrong "
            "sibling, and has one at most. Raise num_generations to 3 at least (published: 8), or choose another "
            "strategy."
        )


@rule(RULES, "algorithm.teacher algorithm.advantage algorithm.token_weight data", "model")
def _answers_for_a_teacher(settings: Settings) -> Said:
    """teacher_logps with rows whose reference is no text or number."""
    if settings.loaded.unusable_references:
        yield settings.loaded.unusable_references


@rule(RULES, "rewards evaluation", "model")
def _names_of_functions(settings: Settings) -> Said:
    """Decodings with several reward functions of one name."""
    if settings.has_decodings and (names := settings.loaded.same_names):
        yield (
            f"decodings are given, and several reward functions are called {', '.join(names)}: this evaluation reports "
            "the score of each by its name. Give each function a __name__ of its own."
        )


@rule(RULES, "algorithm.prompt_sampler algorithm.revision algorithm.teacher evaluation data", "model")
def _images(settings: Settings) -> Said:
    """A column of images with decodings, a revision, a teacher or a prompt sampler of several rounds."""
    column, strategies = settings.loaded.image_column, settings.strategies
    if settings.loaded.is_vlm and strategies.taught:
        taught = " and ".join(strategies.taught)
        yield (
            f"{taught} with a model of images: a teacher's prompt is text, and the images of its row would not be in "
            f"it. Choose a strategy that names no {taught}, or a model of text."
        )
    if column is None:
        return
    sampler = strategies.prompt_sampler
    asked = ["decodings"] * settings.has_decodings + ["revision"] * (strategies.revision is not None)
    asked += [_described(sampler)] if sampler is not None and max_rounds(sampler) > 1 else []
    for each in asked:
        yield (
            f"{each} with the column {column!r}: there a prompt is answered without the images of its row. Put the "
            'images into the messages of the prompt (a part {"type": "image", "image": …}), or leave it out.'
        )


# Generation

_PLAIN = {"use_vllm": False, "use_transformers_continuous_batching": False, "cache_implementation": None}


@gives_up("generation")
def _compact_generation(settings: Settings) -> Iterator[str]:
    """Compact generation with another way of decoding than transformers' own sampling with a plain cache."""
    args = settings.args
    for name, plain in _PLAIN.items():
        if getattr(args, name) != plain:
            yield f"{name} is {getattr(args, name)!r}"
    if args.generation_kwargs:
        yield f"generation_kwargs is {args.generation_kwargs!r}, which may ask for another way of decoding"


@gives_up("generation")
def _compact_generation_by_model(settings: Settings) -> Iterator[str]:
    """Compact generation with sharded weights, or a model whose cache is not the keys and values of text tokens."""
    if settings.loaded.is_sharded:
        yield "the parameters are sharded, so that all ranks must run equally many forward passes"
    elif settings.loaded.is_vlm or not settings.loaded.has_plain_cache:
        yield "the model keeps more, or less, than the keys and values of each text token"


def _not_compact(settings: Settings) -> list[str]:
    asked = [] if settings.speed.generation != "trl" else ["generation = 'trl'"]
    return asked or problems_of(settings, "generation")


@rule(RULES, "common_random_numbers trl.use_vllm")
def _common_noise(settings: Settings) -> Said:
    """common_random_numbers without compact generation."""
    if settings.speed.common_random_numbers and (reasons := _not_compact(settings)):
        yield (
            "common_random_numbers = true: tokens are drawn by noise of our own, which only transformers' sampling "
            f"with a plain cache takes, and {reasons[0]}. Leave one of the two out."
        )


@rule(RULES, "common_random_numbers environment", "model")
def _common_noise_of_a_rollout_function(settings: Settings) -> Said:
    """common_random_numbers with a rollout function, or a model that is not generated from compactly."""
    own = settings.loaded.own_generation
    if settings.speed.common_random_numbers and own == "rollout_func":
        yield (
            f"common_random_numbers with {own}: tokens are drawn by the function, which takes no noise of ours. Leave "
            "one of the two out."
        )
    elif settings.speed.common_random_numbers and (reasons := _not_compact(settings)):
        yield f"common_random_numbers = true, and no noise of ours is taken: {reasons[0]}. Leave it out."


# Rollout batches that are written ahead of training


@rule(RULES, "speed.staleness trl.use_vllm algorithm.advantage algorithm.token_weight algorithm.coefficient")
def _entropies_of_an_engine(settings: Settings) -> Said:
    """staleness and vLLM with a strategy that asks for the entropies of π_old, Σ π_old², or what a teacher scores."""
    if settings.speed.staleness and settings.args.use_vllm:
        for part in settings.strategies.all:
            for signal in [signal for signal in settings.strategies.taught if signal in part.signals]:
                yield (
                    f"{_described(part)} asks for {signal}, which this trainer's own model scores, and with staleness "
                    "and vLLM π_old is the engine's, of other weights or other rounding. "
                    "Choose another strategy, generate with transformers, or write staleness: 0."
                )
            if asked := {"entropies", "sum_pi_squared"} & set(part.signals):
                yield (
                    f"{_described(part)} asks for {' and '.join(sorted(asked))}, and with staleness and vLLM π_old is "
                    "the policy of the engine, which says the log-probabilities of the tokens that it drew and nothing "
                    "of the others. Choose another strategy, generate with transformers, or write staleness: 0."
                )


@gives_up("overlap_generation")
def _overlapped_generation(settings: Settings) -> Iterator[str]:
    """Generation during training without staleness and a vLLM server, or generating more than once a rollout batch."""
    args, strategies = settings.args, settings.strategies
    if settings.speed.staleness == 0 or not args.use_vllm or args.vllm_mode != "server":
        yield "staleness and a vLLM server are needed: only a server generates while this process trains"
    sampler = strategies.prompt_sampler
    several = [_described(sampler)] if sampler is not None and max_rounds(sampler) > 1 else []
    several += ["revision"] if strategies.revision is not None else []
    for each in several:
        yield f"{each} generates again by what was scored, and the weights would have moved in between"
    if strategies.advantage is not None and strategies.advantage.traits.draws_at_random:
        yield f"{_described(strategies.advantage)} draws at random, and would draw other numbers"


@gives_up("overlap_generation")
def _overlapped_turns(settings: Settings) -> Iterator[str]:
    """Generation during training with tools, environments, a rollout function or images."""
    if other := settings.loaded.own_generation or settings.loaded.image_column:
        yield f"what is generated during training is one plain completion of a text, and there is {other}"


@rule(RULES, "speed.staleness data", "model")
def _rows_ahead(settings: Settings) -> Said:
    """staleness with streamed data."""
    if settings.speed.staleness and not settings.loaded.has_positions:
        yield (
            "staleness looks the rows of later rollout batches up by their position, and streamed data has none. Load "
            "the data whole, or write staleness: 0."
        )


# Where π_old is scored although the loss's own pass would do


@gives_up("skip_old_logps")
def _old_policy_is_asked_for(settings: Settings) -> Iterator[str]:
    """No pass for π_old with a strategy that needs π_old before the loss is computed."""
    strategies, mode = settings.strategies, settings.args.vllm_importance_sampling_mode
    if strategies.revision is not None:
        yield "answers are generated a second time, after the rollout batch was scored"
    if (estimator := strategies.advantage) is None:
        return
    asked = {"old_logps", "entropies", "sum_pi_squared"} & set(estimator.signals)
    if asked:
        yield f"advantage {estimator.name!r} asks for {' and '.join(sorted(asked))}"
    if mode.startswith("sequence") and "sequence_weights" in estimator.signals:
        yield (
            f"advantage {estimator.name!r} asks for the weight of each trajectory, of which "
            f"vllm_importance_sampling_mode {mode!r} is a factor"
        )


@gives_up("skip_old_logps")
def _passes_differ(settings: Settings) -> Iterator[str]:
    """No pass for π_old with a model that answers differently from one pass to the next."""
    if settings.loaded.varies:
        yield settings.loaded.varies


# Where micro-batches stay as TRL cuts them

_FEW_TOKENS = 3  # of the six of the tiny example
_LENGTH_DEPENDENT = ("dynamic", "longrope")


def _rows_together(strategies: Strategies) -> int:
    """Rows that stay together, as the tiny example has them: a row or one of its groups."""
    return GROUP_SIZE if strategies.keep_groups == "forward" else 1


@gives_up("microbatches")
def _loss_of_the_cut(settings: Settings) -> Iterator[str]:
    """microbatches: planned with a loss or a strategy that looks at all tokens of a micro-batch."""
    args, strategies = settings.args, settings.strategies
    if args.top_entropy_quantile < 1.0:
        yield (
            f"top_entropy_quantile = {args.top_entropy_quantile:g} takes its threshold from the tokens of each "
            "micro-batch, so another cut would train other tokens"
        )
    if args.entropy_coef != 0.0 or args.use_adaptive_entropy:
        yield (
            "an entropy bonus (entropy_coef, use_adaptive_entropy) is a mean over the tokens of each micro-batch, all "
            "rows included, so another cut would weigh them differently"
        )
    if args.loss_type == "bnpo" and args.beta != 0.0:
        yield (
            f"loss_type 'bnpo' with beta = {args.beta:g} divides the KL term too by the tokens of each micro-batch, "
            "which an advantage cannot make up for"
        )
    size = _rows_together(strategies)
    for part in (strategies.token_weight, strategies.coefficient):
        if part is not None and part.traits.draws_at_random:
            yield f"{part.kind} {part.name!r} draws at random, so another cut would draw otherwise"
        elif part is not None and (part.traits.depends_on_the_cut or not separable(part, size)):
            beside = "a row" if size == 1 else "a group"
            yield (
                f"{part.kind} {part.name!r} changes with what lies beside {beside} in its micro-batch, so another cut "
                "would weigh tokens differently"
            )


@gives_up("microbatches")
def _model_of_the_cut(settings: Settings) -> Iterator[str]:
    """microbatches: planned with a model that looks at the whole padded micro-batch."""
    loaded = settings.loaded
    if loaded.has_router_loss:
        yield "the router loss of a Mixture-of-Experts model is a mean over the tokens of each micro-batch"
    if loaded.is_vlm:
        yield "images are not cut with their rows"
    if loaded.rope_type in _LENGTH_DEPENDENT:
        yield f"rope type {loaded.rope_type!r} turns positions by the length of the padded batch"


# Where each row computes its own prompt


@gives_up("shared_prompts")
def _model_of_shared_prompts(settings: Settings) -> Iterator[str]:
    """Prompts are shared with a model that would compute something else in one sequence than in many."""
    loaded = settings.loaded
    if settings.speed.microbatches == "trl" or problems_of(settings, "microbatches"):
        yield "rows of one prompt lie together in planned micro-batches alone"
    if loaded.unshareable:
        yield loaded.unshareable
    if loaded.varies:
        yield loaded.varies
    if loaded.image_column:
        yield f"the column {loaded.image_column!r} holds images, which are not laid out with the prompts"


def rope_type(config: Any) -> str | None:
    """How a model computes rotary positions; ``None`` where it has none."""
    parameters = getattr(config, "rope_parameters", None)
    if not parameters:
        return None
    kinds = parameters if "rope_type" in parameters else next(iter(parameters.values()), {})
    return kinds.get("rope_type") if isinstance(kinds, dict) else None
