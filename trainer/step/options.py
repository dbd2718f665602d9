"""What `RLVRTrainer` can be asked for beside its strategies, and the counts of batches and steps that follow."""

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
"""The change of a step's size from which rounding and truncation are warned of. It is a change of the learning rate by
as much; published runs give theirs to one digit, so that 5 % is the most that none of them states."""


@with_config(use_attribute_docstrings=True)
@dataclass(frozen=True)
class Speed:
    """What makes a run faster and leaves what it trains as it is; the defaults are TRL's own ways.

    The section ``speed`` of a run file is made of it (`trainer.run.config.schema`).
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
    """``trl`` calls transformers as TRL does; ``compact`` gives the same tokens for less: its cache has room to grow,
    and rows that have ended leave the batch. ``None`` = ``compact`` where transformers samples with a plain cache.
    """
    skip_old_logps: bool | None = False
    """With vLLM, π_old is not scored in a pass of its own where the loss's pass gives the same numbers; ``None`` =
    where micro-batches are planned. Where that would not be exact the pass is made, with a warning that says why.
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
    """Where given, every `evaluate` samples from this seed and leaves the training run's random stream as it found it,
    so that how often one evaluates does not change what is trained.
    """
    decodings: Sequence[Decoding] = ()
    """How `evaluate` draws completions of each held-out row. Where given, ``eval_dataset`` is a dataset or a mapping
    name → dataset, and `evaluate` answers, judges and logs as `trainer.step.evaluation` says. Without, `evaluate` is
    TRL's.
    """


@dataclass(frozen=True)
class Guards:
    """What watches a run: non-finite losses and exhausted memory end in a message (`trainer.step.guards`).

    A watched run also continues its log lines after a resume, and leaves out TRL's model card.
    """

    fault_folder: Path
    """Where batches with a fault are kept."""
    max_skipped: int = 0
    """How many optimizer steps with a non-finite loss or gradient may be left out."""


@dataclass(frozen=True)
class Schedule:
    """How often a rollout batch is trained on before the next one is generated.

    ``steps_per_generation`` micro-batches are of one rollout batch, ``accumulated`` of one optimizer step; the batch is
    trained ``num_iterations``, TRL's μ, times ``num_passes``, the schedule's.
    """

    steps_per_generation: int
    accumulated: int
    num_iterations: int
    num_passes: int

    @classmethod
    def of(cls, args: "GRPOConfig", num_passes: int) -> "Schedule":
        """That of TRL's settings with an update schedule of so many passes."""
        return cls(args.steps_per_generation, args.gradient_accumulation_steps, args.num_iterations, num_passes)

    @property
    def together(self) -> int:
        """Micro-batches that are certain to be of one rollout batch and of one optimizer step."""
        return gcd(self.steps_per_generation, self.accumulated)

    @property
    def microbatches_per_rollout(self) -> int:
        """Forward passes that train one rollout batch, in all iterations and passes."""
        return self.steps_per_generation * self.num_iterations * self.num_passes

    @property
    def is_on_policy(self) -> bool:
        """Whether every rollout batch is trained in one optimizer step, so that the ratio is 1."""
        return self.accumulated % self.microbatches_per_rollout == 0

    def rollouts_begun(self, steps: int, per_epoch: int) -> int:
        """Rollout batches of which ``steps`` optimizer steps train a part, with so many in an epoch.

        The last optimizer step of an epoch trains what is left of it.
        """
        epoch = per_epoch * self.microbatches_per_rollout
        epochs, left = divmod(steps, -(-epoch // self.accumulated))
        return -(-(epochs * epoch + min(left * self.accumulated, epoch)) // self.microbatches_per_rollout)

    def place(self, trained: int) -> int:
        """Which micro-batch of the rollout batch comes after so many micro-batches."""
        return trained % self.steps_per_generation

    def pass_index(self, trained: int) -> int:
        """Which pass over the rollout batch it belongs to."""
        return (trained // self.steps_per_generation) % self.num_passes
