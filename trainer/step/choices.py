"""Decides which shortcuts are used: each where it does not change what is trained; elsewhere TRL's own way is used."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from torch import nn

from evenkeel.errors import Refusal
from evenkeel.trainer.algorithms.registry import Strategy
from evenkeel.trainer.algorithms.results import max_rounds
from evenkeel.trainer.algorithms.strategies import Strategies
from evenkeel.trainer.algorithms.trial import GROUP_SIZE, separable
from evenkeel.trainer.step.options import Schedule, Speed

if TYPE_CHECKING:
    from trl import GRPOConfig


@dataclass(frozen=True)
class Loaded:
    """Facts that are known once the model, the data and the reward functions are loaded.

    Attributes:
        own_generation: ``rollout_func``, ``tools`` or ``environment_factories``, if one is given.
        has_router_loss: the load-balancing loss of a Mixture-of-Experts model is trained.
        rope_type: how rotary positions are computed; ``None`` = the model has none.
        varies: why two passes with the same weights differ, if they do.
        has_plain_cache: its cache is the keys and values of each text token.
        is_sharded: no process holds all weights.
        image_column: name of a column of images, if there is one.
        turn_columns: columns that environments log for each turn, where all environments are from a run file.
        sampling: options of transformers' sampling that the model's own generation config sets.
        unshareable: why rows cannot share their prompt's forward pass, if they cannot and ``shared_prompts`` is on.
    """

    own_generation: str | None = None
    has_router_loss: bool = False
    is_vlm: bool = False
    rope_type: str | None = None
    varies: str | None = None
    has_plain_cache: bool = True
    is_sharded: bool = False
    image_column: str | None = None
    turn_columns: frozenset[str] = frozenset()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    unshareable: str | None = None


@dataclass(frozen=True)
class Settings:
    """The input of the rules; ``drop_in`` = no strategy was given, so that nothing that TRL accepts is refused."""

    args: "GRPOConfig"
    strategies: Strategies
    speed: Speed = Speed()
    cut: Literal["by_rank", "over_all_ranks"] = "by_rank"
    has_decodings: bool = False
    drop_in: bool = False
    loaded: Loaded = Loaded()

    @property
    def is_on_policy(self) -> bool:
        """Whether one optimizer step trains each rollout batch, on the policy that generated it: the ratio is 1."""
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
        """The prompt sampler, in a list, if it may generate more than once for a rollout batch."""
        sampler = self.strategies.prompt_sampler
        return [] if sampler is None or max_rounds(sampler) == 1 else [described(sampler)]


Option = Literal["microbatches", "skip_old_logps", "shared_prompts", "generation", "overlap_generation"]
SWITCHES: tuple[Option, ...] = get_args(Option)
"""Options of `Speed` that are used where they are exact. The variable EVENKEEL_OFF, names separated by commas, turns
some off, for debugging."""


def problems_of(settings: Settings, option: Option) -> list[str]:
    """Why ``option`` would not be exact, or is off by EVENKEEL_OFF: TRL's own way is then taken."""
    off = ["EVENKEEL_OFF names it"] if option in switched_off() else []
    return [*off, *REASONS[option](settings)]


def switched_off() -> set[str]:
    """The names in the variable EVENKEEL_OFF.

    Raises:
        Refusal: a name is not in `SWITCHES`.
    """
    names = {name.strip() for name in os.environ.get("EVENKEEL_OFF", "").split(",")} - {""}
    if unknown := names.difference(SWITCHES):
        what = f"EVENKEEL_OFF = {', '.join(sorted(unknown))}: its names are {', '.join(SWITCHES)}."
        raise Refusal(what, code="unknown-switch")
    return names


def drops(module: nn.Module) -> bool:
    """Whether a module has dropout in training mode."""
    attention = bool(getattr(module, "attention_dropout", 0.0))
    return attention or (isinstance(module, nn.Dropout) and module.p > 0)


def divides_over_ranks(args: "GRPOConfig", keep_groups: str) -> bool:
    """Whether each rank's rows (or groups, if kept) of a rollout batch divide evenly over its optimizer steps."""
    steps, accumulated = args.steps_per_generation, args.gradient_accumulation_steps
    rows = steps * args.per_device_train_batch_size
    units = rows if keep_groups == "off" else rows // args.num_generations
    return steps % accumulated == 0 and units % (steps // accumulated) == 0


def rope_type(config: Any) -> str | None:
    """The kind of a model's rotary positions; ``None`` where it has none."""
    parameters = getattr(config, "rope_parameters", None)
    if not parameters:
        return None
    kinds = parameters if "rope_type" in parameters else next(iter(parameters.values()), {})
    return kinds.get("rope_type") if isinstance(kinds, dict) else None


def described(part: Strategy) -> str:
    """Kind and name, for messages."""
    return f"{part.kind} {part.name!r}"


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


def _not_overlapped(settings: Settings) -> Iterator[str]:
    """A rollout batch that needs more than one plain request to a server."""
    args, strategies, loaded = settings.args, settings.strategies, settings.loaded
    if settings.speed.staleness == 0 or not args.use_vllm or args.vllm_mode != "server":
        yield "only with staleness and a vLLM server"
    for each in settings.several_rounds + ["revision"] * (strategies.revision is not None):
        yield f"{each} generates again by what was scored"
    if strategies.advantage is not None and strategies.advantage.traits.draws_at_random:
        yield f"{described(strategies.advantage)} draws at random"
    if other := loaded.own_generation or loaded.image_column:
        yield f"only plain completions of a text, and there is {other}"


def _not_skipped(settings: Settings) -> Iterator[str]:
    """A strategy that needs π_old before the loss is computed, or passes that differ."""
    strategies = settings.strategies
    if strategies.revision is not None:
        yield "revisions are generated after the scoring"
    if (estimator := strategies.advantage) is not None:
        asked = {"old_logps", "entropies", "sum_pi_squared", *["sequence_weights"] * bool(settings.sequence_mode)}
        if found := asked & {*estimator.signals}:
            yield f"advantage {estimator.name!r} asks for {' and '.join(sorted(found))}"
    if settings.loaded.varies:
        yield settings.loaded.varies


_LENGTH_DEPENDENT = ("dynamic", "longrope")


def _not_planned(settings: Settings) -> Iterator[str]:
    """A loss, a strategy or a model that looks at all tokens of a micro-batch."""
    args, strategies, loaded = settings.args, settings.strategies, settings.loaded
    together = GROUP_SIZE if strategies.keep_groups == "forward" else 1  # rows of the tiny example to try alone
    if args.top_entropy_quantile < 1.0:
        yield f"top_entropy_quantile = {args.top_entropy_quantile:g} goes by the tokens of a micro-batch"
    if args.entropy_coef != 0.0 or args.use_adaptive_entropy:
        yield "the entropy bonus is a mean over the tokens of a micro-batch"
    if args.loss_type == "bnpo" and args.beta != 0.0:
        yield "loss_type 'bnpo' divides the KL term by the tokens of a micro-batch"
    for part in (strategies.token_weight, strategies.coefficient):
        if part is not None and part.traits.draws_at_random:
            yield f"{described(part)} draws at random"
        elif part is not None and (part.traits.depends_on_the_cut or not separable(part, together)):
            yield f"{described(part)} changes with the other rows of a micro-batch"
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
"""Option → reasons why it would not be exact."""
