"""Options of `RLVRTrainer` other than its strategies, and counts of batches and steps that follow from TRL's."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import Field, create_model, with_config

from evenkeel.trainer.evaluation.decoding import Decoding

if TYPE_CHECKING:
    from trl import GRPOConfig

NOTABLE_CHANGE = 0.05
"""Relative change of a step's size from which rounding and truncation are warned of. It acts like such a change of the
learning rate; published runs give theirs to one digit, so that 5 % is below what any of them specifies."""


@with_config(use_attribute_docstrings=True)
@dataclass(frozen=True)
class Speed:
    """Options that make a run faster without changing what it trains (but ``staleness``); defaults: TRL's own ways.

    The section ``speed`` of a run file is made from it (`trainer.run.config.schema`).
    """

    microbatches: Literal["planned", "trl"] = "trl"
    """``trl`` leaves micro-batches as TRL cuts them; ``planned`` cuts them again where that leaves the gradient as it
    is, and elsewhere warns with the reason. Where a comparison of gradients fails, TRL's are trained from there on.
    """
    tokens_per_microbatch: Annotated[int, Field(ge=1)] | None = None
    """Padded tokens of a planned one at most; ``None`` = what the configured one may take."""
    shared_prompts: bool | None = False
    """Rows of one prompt compute it once (see `evenkeel.trainer.step.packing`) in those planned micro-batches
    that this leaves at least 1.3 times less work. Where it would not be exact they do not, with a warning that says
    why; ``None`` = without one.
    """
    verify_steps: int = 1
    """Optimizer steps, from the first with a gradient on, whose gradient is computed by both cuts first; above 0 some
    later ones too (see `evenkeel.trainer.step.microbatches.Microbatches`).
    """
    generation: Literal["compact", "trl"] | None = "trl"
    """``trl`` calls transformers as TRL does; ``compact`` gives the same tokens for less: a prompt is read once, the
    cache has room to grow, ended rows leave. ``None`` = ``compact`` where transformers samples with a plain cache.
    """
    skip_old_logps: bool | None = False
    """With vLLM, π_old is not scored in a pass of its own where the loss's pass gives the same numbers; ``None`` =
    where planned micro-batches are set. Where that would not be exact the pass is made, with a warning that says why.
    """
    common_random_numbers: bool = False
    """Tokens are drawn by noise that runs have in common, so that variants of a sweep differ where their policies do
    (see `evenkeel.trainer.step.generation.CommonRandomNumbers`), where transformers samples with a plain cache.
    """

    staleness: Annotated[int, Field(ge=0)] = 0
    """Every rollout batch is generated so many batches before it is trained, as in asynchronous training, and keeps
    π_old of the policy that wrote it (see `evenkeel.trainer.step.rollout`). Unlike the others it changes what is
    trained.
    """
    overlap_generation: bool | None = False
    """With ``staleness`` and a vLLM server: the newest rollout batch is generated while an older one is trained. What
    is trained stays the same. ``None`` = where it does.
    """

    def __post_init__(self) -> None:
        fields: Any = {name: (kind, ...) for name, kind in get_type_hints(Speed, include_extras=True).items()}
        create_model("Speed", **fields)(**vars(self))  # refuses other words and numbers


@with_config(use_attribute_docstrings=True)
@dataclass(frozen=True)
class Engine:
    """How far vLLM is trusted to answer with the policy that is trained (see `evenkeel.trainer.step.provenance`).

    The section ``vllm`` of a run file is made of it (`trainer.run.config.schema`).
    """

    agreement_bound: Annotated[float, Field(gt=0)] | None = None
    """The largest difference of a log-probability with which a run goes on; ``None`` = that of the dtype that the
    trainer computes in (`evenkeel.trainer.step.provenance.BOUNDS`).
    """


@dataclass(frozen=True)
class Evaluation:
    """How held-out rows are answered."""

    seed: int | None = None
    """Where given, every `evaluate` samples from this seed, and the random stream of training stays as it was."""
    decodings: Sequence[Decoding] = ()
    """How `evaluate` draws completions of each row of ``eval_dataset``, a dataset or a mapping name → dataset, which
    `trainer.step.evaluation` judges and logs. Without, `evaluate` is TRL's."""


@dataclass(frozen=True)
class Guards:
    """Options of `trainer.step.guards`: non-finite losses and exhausted memory end in a message.

    With guards a run also continues its log lines after a resume, and gets no model card of TRL's.
    """

    fault_folder: Path
    """Folder of saved batches with a fault."""
    max_skipped: int = 0
    """Optimizer steps with a non-finite loss or gradient that are skipped before one stops the run."""


@dataclass(frozen=True)
class Schedule:
    """Counts of micro-batches and optimizer steps for each rollout batch.

    A rollout batch is cut into ``steps_per_generation`` micro-batches, each trained ``num_iterations`` (TRL's μ) times
    ``num_passes`` (the update schedule's) times; ``accumulated`` micro-batches make an optimizer step.
    """

    steps_per_generation: int
    accumulated: int
    num_iterations: int
    num_passes: int

    @classmethod
    def of(cls, args: "GRPOConfig", num_passes: int) -> "Schedule":
        """The schedule of TRL's settings with an update schedule of ``num_passes``."""
        return cls(args.steps_per_generation, args.gradient_accumulation_steps, args.num_iterations, num_passes)

    @property
    def block(self) -> int:
        """Micro-batches of a block: all of one rollout batch and of one optimizer step."""
        return gcd(self.steps_per_generation, self.accumulated)

    @property
    def microbatches_per_rollout(self) -> int:
        """Forward passes that train one rollout batch, in all iterations and passes."""
        return self.steps_per_generation * self.num_iterations * self.num_passes

    @property
    def is_on_policy(self) -> bool:
        """Whether one optimizer step trains each rollout batch, so that the ratio is 1."""
        return self.accumulated % self.microbatches_per_rollout == 0

    def rollouts_begun(self, steps: int, per_epoch: int) -> int:
        """Rollout batches that ``steps`` optimizer steps train, also in part; an epoch has ``per_epoch``.

        The last optimizer step of an epoch trains the micro-batches left in it.
        """
        epoch = per_epoch * self.microbatches_per_rollout
        epochs, left = divmod(steps, -(-epoch // self.accumulated))
        return -(-(epochs * epoch + min(left * self.accumulated, epoch)) // self.microbatches_per_rollout)

    def place(self, trained: int) -> int:
        """Index in the rollout batch of the micro-batch after ``trained`` micro-batches."""
        return trained % self.steps_per_generation

    def pass_index(self, trained: int) -> int:
        """Index of that micro-batch's pass over the rollout batch."""
        return (trained // self.steps_per_generation) % self.num_passes
