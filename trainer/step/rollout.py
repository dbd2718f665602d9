"""One rollout batch, and where in the run it stands."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from evenkeel.trainer.algorithms.diagnostics import shared_prefix_lengths
from evenkeel.trainer.algorithms.drift import uniform_groups
from evenkeel.trainer.algorithms.groups import dead_groups
from evenkeel.trainer.algorithms.registry import Strategy
from evenkeel.trainer.algorithms.row_draws import row_keys

if TYPE_CHECKING:
    from trl import GRPOConfig

Batch = dict[str, Any]
"""A rollout batch or micro-batch as TRL passes it around: name → tensor with rows, list, scalar or ``None``."""
Row = dict[str, Any]
"""One row of the data."""


@dataclass(frozen=True)
class Position:
    """Where in the run training stands.

    Attributes:
        step: optimizer steps made, also before the run was resumed.
        max_steps: optimizer steps of the run.
        microbatches: micro-batches trained since this process started; TRL's ``_step``.
        rollout: rollout batches of the run that were trained to their end, so the number of the one in training. The
            same on any number of processes, and in a run that was resumed.
    """

    step: int
    max_steps: int
    microbatches: int
    rollout: int

    def seed(self, run: int) -> int:
        """A seed of the rollout batch in training, another one for each, from that of the run."""
        return run * 1_000_003 + self.rollout

    @property
    def where(self) -> str:
        """For messages."""
        return f"at optimizer step {self.step}"


@dataclass(frozen=True)
class Schedule:
    """How often a rollout batch is trained on before the next one is generated; all counts are of micro-batches.

    Attributes:
        steps_per_generation: of one rollout batch.
        accumulated: of one optimizer step.
        num_iterations, num_passes: how often the batch is trained as a whole: TRL's μ and the schedule's passes.
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
    def microbatches_per_rollout(self) -> int:
        """Forward passes that train one rollout batch, in all iterations and passes."""
        return self.steps_per_generation * self.num_iterations * self.num_passes

    @property
    def is_on_policy(self) -> bool:
        """Whether every rollout batch is trained in one optimizer step, so that the ratio is 1."""
        return self.accumulated % self.microbatches_per_rollout == 0

    def rollouts_of(self, step: int) -> int:
        """Rollout batches trained to their end in ``step`` optimizer steps, if every one of these is whole.

        Those at the end of an epoch may hold fewer micro-batches; the run's counts know.
        """
        return step * self.accumulated // self.microbatches_per_rollout

    def rollouts_begun(self, steps: int, per_epoch: int) -> int:
        """Rollout batches of which ``steps`` optimizer steps train a part, with so many in an epoch.

        The last optimizer step of an epoch trains what is left of it.
        """
        epoch = per_epoch * self.microbatches_per_rollout
        epochs, left = divmod(steps, -(-epoch // self.accumulated))
        return -(-(epochs * epoch + min(left * self.accumulated, epoch)) // self.microbatches_per_rollout)

    def place(self, position: Position) -> int:
        """Which micro-batch of the rollout batch is next."""
        return position.microbatches % self.steps_per_generation

    def pass_index(self, position: Position) -> int:
        """Which pass over the rollout batch the current micro-batch belongs to."""
        return (position.microbatches // self.steps_per_generation) % self.num_passes


@dataclass
class Rollout:
    """This rank's part of a rollout batch, from its generation until it is cut into micro-batches.

    Attributes:
        rows: of the data (B,).
        batch: TRL's tensors of them.
        position: where in the run it was generated.
        rewards_per_function: (N, F) of all ranks.
        columns: what this rank's reward functions logged, name → one value a row.
        scores: ``log π_old``, its entropy and Σ π_old², computed once more where TRL computed none and somebody asked.
    """

    rows: list[Row]
    batch: Batch
    position: Position
    rewards_per_function: Tensor
    columns: dict[str, list[Any]]
    score: Callable[[Batch], dict[str, Tensor]]
    """Scores the completions of a batch under the policy as it is: ``old_per_token_logps``, ``old_entropies``, and
    ``old_sum_pi_squared`` where a strategy names it."""
    scores: dict[str, Tensor] = field(default_factory=dict)

    @property
    def mask(self) -> Tensor:
        """Tokens that the loss counts, (B, T)."""
        return loss_mask(self.batch)

    def old_score(self, name: str) -> Tensor:
        """What `score` gives of that name (B, T): TRL's own, or of one pass more where it made none."""
        if name not in self.batch and not self.scores:
            self.scores = self.score(self.batch)
        score: Tensor = self.batch[name] if name in self.batch else self.scores[name]
        return score


def tokens_of(batch: Mapping[str, Any]) -> tuple[Tensor, Tensor, int]:
    """Token ids and attention mask (B, P + T) of prompts and completions, and T."""
    input_ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    return input_ids, mask, batch["completion_ids"].shape[1]


def loss_mask(batch: Mapping[str, Any]) -> Tensor:
    """Tokens that the loss counts, (B, T)."""
    mask: Tensor = batch["completion_mask"]
    return mask * batch["tool_mask"] if "tool_mask" in batch else mask


def verdicts(columns: Mapping[str, list[Any]], *, told: bool = False) -> Tensor | None:
    """The column ``correct`` as 1, 0, NaN; ``None`` where there is none, or it holds something else than verdicts.

    With ``told`` what training may know of it: ``noisy_correct``, where a reward has noise.
    """
    values = columns.get("noisy_correct" if told and "noisy_correct" in columns else "correct", [])
    if not values or not all(value is None or (isinstance(value, float | int) and value in (0, 1)) for value in values):
        return None
    return torch.tensor([torch.nan if value is None else float(value) for value in values])


def group_labels(
    signals: Mapping[str, Any], estimator: Strategy | None, *, outcomes: bool, seed: int, rollout_number: int
) -> dict[str, Tensor]:
    """Labels (N,) that the rows of all ranks keep when the batch is cut.

    - ``groups``: the group's number;
    - ``judged``: whether the row was judged;
    - ``row_keys``: see `row_keys`;
    - ``shared_prefix``: how many tokens its group begins with alike; 0 in groups that are not trained;
    - ``all_right``, ``all_wrong``: whether all its judged rows are; with ``outcomes``, and where there are verdicts.
    """
    rewards, group_size = signals["rewards"], signals["group_size"]
    prefixes = shared_prefix_lengths(signals["completion_ids"], signals["mask"], group_size)
    if estimator is None or not estimator.traits.trains_dead_groups:
        prefixes = prefixes.masked_fill(dead_groups(rewards, group_size), 0)
    groups = torch.arange(len(rewards), device=rewards.device) // group_size
    labels = {"groups": groups, "judged": ~rewards.isnan(), "shared_prefix": prefixes}
    labels["row_keys"] = row_keys(len(rewards), seed, rollout_number).to(rewards.device)
    if outcomes and signals["correct"] is not None:
        uniform = uniform_groups(signals["correct"], group_size)
        labels |= {kind: rows[groups] for kind, rows in zip(("all_right", "all_wrong"), uniform, strict=True)}
    return labels
