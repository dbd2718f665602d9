"""The kinds of strategies, the signals that a strategy may name, and the traits that rules read.

A strategy is a function that *names* its inputs. A parameter whose name is in `SIGNALS` for its kind is passed by the
trainer; every other one is an option of the user (keyword-only, with a default unless it is required). A positional
parameter of an estimator, without a default, that is not a signal names a column that a reward function logs.

N completions on all ranks (a group's rows are adjacent), B on this rank's forward pass, T tokens, F reward functions,
K the most assistant turns of a completion.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field
from torch import Tensor

ADVANTAGE, TOKEN_WEIGHT, COEFFICIENT = "advantage", "token_weight", "coefficient"
UPDATE_SCHEDULE, PROMPT_SAMPLER = "update_schedule", "prompt_sampler"

_OF_TEACHERS = {
    "teacher_logps": "log π_old of the same tokens under a prompt that shows the reference; one pass more",
    "teacher_contrast": "log of their ratio after a right sibling's and after wrong ones' responses, 0 without "
    "siblings; five passes more",
}
_OF_STEPS = {"step": "int, optimizer steps done", "max_steps": "int, optimizer steps of the run"}
_OF_TOKENS = {
    "mask": "(B, T) int, 1 where the loss counts the token",
    "old_logps": "(B, T) log π_old",
    "entropies": "(B, T) entropy of π_old at each position, nats",
    "completion_ids": "(B, T) int",
    "groups": "(B,) int, the same number for the responses to one prompt",
    "scored": "(B,) bool, False where the completion was not scored",
    **_OF_STEPS,
}

SIGNALS: dict[str, dict[str, str]] = {
    ADVANTAGE: {
        "rewards": "(N,) weighted sum over the reward functions; NaN = the completion was not scored",
        "group_size": "int, responses to one prompt",
        "rewards_per_function": "(N, F) before the sum; NaN = not scored by that function",
        "reward_weights": "(F,) what each function weighs in the sum",
        "correct": "(N,) 1 right, 0 wrong, NaN unscored: the verifiers' verdict, with a reward's noise",
        "lengths": "(N,) int, tokens that the loss counts",
        "completion_ids": "(N, T) int, padded with the padding token",
        "mask": "(N, T) int, 1 where the loss counts the token",
        "old_logps": "(N, T) log π_old of the sampled tokens, of the trainer's own model at the sampling temperature",
        "entropies": "(N, T) entropy of π_old at each position, nats",
        "sum_pi_squared": "(N, T) Σ_v π_old(v)² over the vocabulary at each position; a pass of its own",
        **{name: f"(N, T) {meaning}" for name, meaning in _OF_TEACHERS.items()},
        "sequence_weights": "(N,) what the configured loss multiplies every token of the trajectory by",
        "turns": "(N, T) int, the assistant turn of the token, from 0; −1 where a tool inserted it, and on padding",
        "turn_rewards": "(N, K) what the environment paid for each turn, `rewards` not in it; NaN after the last turn",
        "state_keys": "(N, K) int, equal where the environment's state before the turn was; −1 unknown, or no turn",
        **_OF_STEPS,
    },
    TOKEN_WEIGHT: {
        "probs": "(B, T) π_old of the sampled tokens, at the sampling temperature",
        "advantages": "(B, T) of the tokens; unscored rows 0",
        **{name: f"(B, T) {meaning}" for name, meaning in _OF_TEACHERS.items()},
        "row_keys": "(B,) int64, the row's own number in the run, whatever it holds: what to draw from (`row_draws`)",
        **_OF_TOKENS,
    },
    COEFFICIENT: {
        "logps": "(B, T) log π of the current pass, detached",
        "log_ratio": "(B, T) log π − log π_old, exactly 0 in the first update of a rollout batch",
        "advantages": "(B, T) of the tokens before token weights; unscored rows 0",
        **_OF_TOKENS,
    },
    UPDATE_SCHEDULE: {},
    PROMPT_SAMPLER: {
        "count": "int, prompts wanted",
        "num_prompts": "int, prompts in the training data",
        "seed": "int, of the run",
    },
}
"""Kind → name → shape and meaning."""

REVISION_COLUMNS = {
    "repair": "(N,) share of a wrong answer's scored revisions that are right; 0 for every other completion",
    "edited": "(N, T) bool, tokens of a wrong answer that a right revision edited; all where there is none",
}
"""Columns that revisions add for estimators, name → shape and meaning."""

TURN_COLUMNS = ("turn_rewards", "state_keys")
"""Signals of an estimator that a reward function of the environment logs: for each row a list, one entry a turn.

A turn is the policy's text up to a tool's answer, or up to the end: the final answer is a turn too. An entry of
``turn_rewards`` is a number, ``None`` = 0; of ``state_keys`` a text, ``None`` = not known. A turn without an entry has
reward 0 and an unknown state. The outcome is in `rewards`, in no turn's entry (see `turns.turn_returns`).
"""

REQUIRED = {ADVANTAGE: ("rewards",), PROMPT_SAMPLER: ("count", "num_prompts")}
"""Kind → signals that a strategy of that kind must name."""

# Ranges of options, checked when a strategy is built by its name
Share = Annotated[float, Field(ge=0, le=1)]
OpenShare = Annotated[float, Field(gt=0, lt=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
AtLeastOne = Annotated[float, Field(ge=1)]
AboveOne = Annotated[float, Field(gt=1)]

Selection = Callable[..., Tensor]
WholeGroups = Literal["step", "forward"]
Strategy = TypeVar("Strategy", bound=Callable[..., Any])


def own_copy(value: Any) -> Any:
    """A copy of ``value`` for one strategy, which may write into it.

    Signals are shared: a strategy that wrote into one (``mask[:, 2:] = 0``) would silently change what is trained.
    """
    return value.clone() if isinstance(value, Tensor) else deepcopy(value)


@contextmanager
def naming(part: str) -> Iterator[None]:
    """Add a note that names ``part`` to an exception raised inside: the traceback may not name it."""
    try:
        yield
    except Exception as error:
        error.add_note(f"Raised by the run's {part}.")
        raise


@dataclass(frozen=True)
class UpdateSchedule:
    """``num_passes`` passes over each rollout batch; pass p trains the tokens ``select(probs, mask, p)``.

    ``select(probs (B, T), mask (B, T), pass_index) → keep (B, T) bool``: pure, and a partition of the mask over
    ``pass_index`` = 0 … num_passes − 1. If it draws it also names ``row_keys``, (B,) int64 (see `row_draws`).
    """

    num_passes: int
    select: Selection

    def kept(self, probs: Tensor, mask: Tensor, pass_index: int, row_keys: Tensor) -> Tensor:
        """The result of `select` for copies of the tensors (see `own_copy`), with ``row_keys`` if it names them."""
        named = {"row_keys": own_copy(row_keys)} if "row_keys" in signature(self.select).parameters else {}
        with naming(f"update schedule, in pass {pass_index + 1} of {self.num_passes}"):
            return self.select(own_copy(probs), own_copy(mask), pass_index, **named)


@dataclass(frozen=True)
class Traits:
    """Declared properties of a strategy that trying it does not show; rules read these, never names.

    Attributes:
        trains_dead_groups: the estimator has no baseline, or credits more than the reward, so that a group of equal
            rewards has a gradient. Without it such a group gets exact zeros, whatever the estimator returns.
        needs_whole_groups: a group must stay in one optimizer ``step``, or in one ``forward`` pass.
        cancels_shared_tokens: the contributions of tokens that a group shares cancel in every step, as long as nothing
            is clipped; settings that would break that are refused. True: at each position that the group shares.
            ``"classes"``: summed over all places of a token id, and not at each position.
        needs_equal_sequence_weights: holds only where the loss weighs all responses of a group alike.
        needs_sequence_advantages: a coefficient for estimators that give all tokens of a response one advantage.
        depends_on_the_cut: a token weight that changes with the other rows of the micro-batch. Found by trying it where
            the tiny example shows it.
        depends_on_other_groups: an estimator whose advantages of a group change with the rows of other groups: a mean
            or std over the batch. Without this trait it is refused, as one that has confused the axes of groups.
        draws_at_random: its result differs each time, from torch's random stream, which differs between processes.
            Not for schedules and samplers, whose results must repeat.
    """

    trains_dead_groups: bool = False
    needs_whole_groups: WholeGroups | None = None
    cancels_shared_tokens: bool | Literal["classes"] = False
    needs_equal_sequence_weights: bool = False
    needs_sequence_advantages: bool = False
    depends_on_the_cut: bool = False
    depends_on_other_groups: bool = False
    draws_at_random: bool = False


def traits(**declared: Any) -> Callable[[Strategy], Strategy]:
    """Declare a strategy's `Traits`: ``@traits(trains_dead_groups=True)`` above a function or class."""
    found = Traits(**declared)

    def declare(strategy: Strategy) -> Strategy:
        strategy.traits = found  # type: ignore[attr-defined]
        return strategy

    return declare


def traits_of(strategy: Callable[..., Any]) -> Traits:
    """The traits that ``strategy`` (a function, class or instance) declared; the defaults if it declared none."""
    while isinstance(strategy, partial):
        strategy = strategy.func
    declared = getattr(strategy, "traits", None)
    return declared if isinstance(declared, Traits) else Traits()
