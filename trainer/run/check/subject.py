"""What is checked: a run's configuration with everything that could be built of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rewards.verifier import Verifier
from trainer.algorithms.strategies import Strategies
from trainer.run.config import BatchPlan, RunConfig

if TYPE_CHECKING:
    from torch import nn


@dataclass
class Subject:
    """A run before it is started. What could not be built is ``None`` or empty, and its checks say nothing.

    Attributes:
        processes: how many the run is started on, or would be.
        rows: ``train`` and the held-out sets, as `Experiment.rows` gives them.
        args: TRL's arguments.
        settings: the model's configuration; of one that also sees, the text's.
        skeleton: the model on torch's meta device: names and shapes without weights.
        most_rows: of each set, so many rows are tokenized.
        prompt_lengths: tokens of the prompts of each set that were tokenized (`lengths.tokenized_lengths`).
        here: the run starts on this machine and now; else a GPU that it lacks is not held against it.
    """

    config: RunConfig
    processes: int
    verifiers: Mapping[str, Verifier] = field(default_factory=dict)
    strategies: Strategies | None = None
    plan: BatchPlan | None = None
    args: Any = None
    rows: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Any = None
    settings: Any = None
    skeleton: "nn.Module | None" = None
    most_rows: int = 1000
    here: bool = False
    prompt_lengths: Mapping[str, list[int]] = field(default_factory=dict)

    @property
    def num_passes(self) -> int:
        """Passes over each rollout batch that the update schedule makes."""
        return 1 if self.strategies is None else self.strategies.schedule.num_passes

    @property
    def context(self) -> int | None:
        """Positions that the model was made for, where its configuration says so."""
        found = getattr(self.settings, "max_position_embeddings", None)
        return found if isinstance(found, int) and found > 0 else None

    def argument(self, name: str) -> Any:
        """One of TRL's arguments, as the file gives it or TRL's default."""
        from trainer.run.config.trl_arguments import grpo_default

        return self.config.trl.get(name, grpo_default(name))
