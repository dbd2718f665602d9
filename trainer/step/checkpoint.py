"""A checkpoint's content in addition to transformers': strategies' states, counts, and metrics not logged yet."""

import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object

from evenkeel.errors import Refusal
from evenkeel.trainer.algorithms.registry import Strategy
from evenkeel.trainer.step.setup import Ranks

FILE = "evenkeel.pt"
ROLLOUT_BATCHES = "rollout_batches"
"""In the run's counts: the rollout batches that were trained to their end."""
_SETTINGS = ("weight_decay", "betas", "eps")
"""Entries of a parameter group that are settings, not state."""


@dataclass(frozen=True)
class LogState:
    """Measurements of one rank since the last log line, at step ``last_logged``: TRL's metrics, the state of `Means`,
    and transformers' sum of losses; ``total_loss`` is the sum up to that line.
    """

    metrics: Mapping[str, list[float]]
    means: Mapping[str, Mapping[str, Any]]
    loss: float
    total_loss: float
    last_logged: int


@dataclass
class Checkpoint:
    """The state that a run's checkpoints hold in ``evenkeel.pt``, and its reader.

    Attributes:
        strategies: those with a state save it, the same on all ranks.
        counts: name → number, the same on all ranks; absent names count 0.
        log_state: of this rank, from the checkpoint that was read; restored when training starts.
        branch: if the checkpoint that was read begins a branch: optimizer steps of a rollout batch over its parent's.
        queue: of this rank, from the checkpoint that was read: `evenkeel.trainer.step.rollout.Lag.packed`.
    """

    strategies: Iterable[Strategy]
    ranks: Ranks
    counts: Counter[str] = field(default_factory=Counter)
    log_state: LogState | None = None
    branch: Fraction | None = None
    queue: bytes = b""

    def content(self, states: dict[str, Any], log_state: LogState, queue: bytes = b"") -> dict[str, Any]:
        """The content of ``evenkeel.pt``, with ``states`` from `agreed_states`; a collective."""
        content = {"strategies": states, "counts": dict(self.counts), "logged": gather_object([asdict(log_state)])}
        return {**content, "queues": self.ranks.count if queue else 0}  # on all ranks, or on none

    def queue_file(self, folder: Path) -> Path:
        """This rank's file of its queue."""
        return folder / f"rollouts_ahead_{self.ranks.index}.pt"

    def read(self, folder: Path) -> None:
        """Restore the strategies and counts, and keep the log state for when training starts.

        Raises:
            Refusal: rollout batches in it were generated ahead by another number of processes.
        """
        found = content_of(folder)
        begun = found.get("branch")
        self.branch = None if begun is None else Fraction(*begun["ratio"])
        for part in self.strategies:
            if not part.has_state or (begun is not None and part.kind not in begun["kept"]):
                continue
            part.function.load_state_dict(found["strategies"][part.kind])  # type: ignore[attr-defined]
        self.counts.clear()
        self.counts.update(found["counts"])
        logged = found["logged"]
        self.log_state = LogState(**logged[self.ranks.index]) if len(logged) == self.ranks.count else None
        self.queue = self._queue(folder, found.get("queues", 0))

    def _queue(self, folder: Path, processes: int) -> bytes:
        """This rank's queue; ``processes``: how many wrote a queue file each, 0 = the checkpoint has none."""
        if processes in (0, self.ranks.count):
            return self.queue_file(folder).read_bytes() if processes else b""
        raise Refusal(
            f"{folder} holds rollout batches that {processes} processes have written ahead (speed.staleness), and "
            f"there are {self.ranks.count}. Resume on {processes}.",
            code="queue",
        )

    def take_log_state(self) -> LogState | None:
        """The log state that was read, once; ``None`` after that."""
        found, self.log_state = self.log_state, None
        return found


def content_of(folder: Path) -> dict[str, Any]:
    """``evenkeel.pt`` of a checkpoint.

    Raises:
        Refusal: there is none.
    """
    if not (folder / FILE).exists():
        what = f"{folder} has no {FILE}: TRL's own trainer wrote it, or it was not written to its end."
        raise Refusal(f"{what} Resume from another, or write it as the model.", code="foreign-checkpoint")
    content: dict[str, Any] = torch.load(folder / FILE, map_location="cpu", weights_only=True)
    return content


def begun_branch(content: Mapping[str, Any], kept: Sequence[str], ratio: Fraction) -> dict[str, Any]:
    """``evenkeel.pt`` of the checkpoint in which a branch begins, from its parent's.

    Args:
        kept: kinds of strategies that keep the parent's state; the others begin without one.
        ratio: optimizer steps of a rollout batch, the branch's over the parent's. Unless it is 1, metrics not logged
            yet are dropped: they count the parent's steps.
    """
    states = {kind: state for kind, state in content["strategies"].items() if kind in kept}
    begun = {"kept": [*kept], "ratio": [ratio.numerator, ratio.denominator]}
    return {**content, "strategies": states, "branch": begun} | ({} if ratio == 1 else {"logged": []})


def optimizer_settings(optimizer: Any, scheduler: Any) -> list[dict[str, Any]]:
    """Each parameter group's settings from the run's arguments, and its learning rate before any schedule."""
    groups = zip(optimizer.param_groups, scheduler.base_lrs, strict=True)
    return [{"initial_lr": rate, **{key: group[key] for key in _SETTINGS if key in group}} for group, rate in groups]


def set_optimizer(optimizer: Any, scheduler: Any, settings: Sequence[Mapping[str, Any]], ratio: Fraction) -> None:
    """Set ``settings`` in an optimizer and its `LambdaLR` whose states were loaded from a parent's checkpoint.

    The schedule continues at ``ratio`` times the parent's steps; Adam's moments stay.
    """
    scheduler.last_epoch = round(scheduler.last_epoch * ratio)
    scheduler.base_lrs = [own["initial_lr"] for own in settings]
    factors = (factor(scheduler.last_epoch) for factor in scheduler.lr_lambdas)
    scheduler._last_lr = [rate * factor for rate, factor in zip(scheduler.base_lrs, factors, strict=True)]
    for group, own, rate in zip(optimizer.param_groups, settings, scheduler._last_lr, strict=True):
        group.update(own, lr=rate)


def agreed_states(strategies: Iterable[Strategy]) -> dict[str, Any]:
    """Kind → state of each strategy that has one; a collective.

    Raises:
        Refusal: ranks hold different states, and a checkpoint keeps one; raised on all ranks.
    """
    stateful = [part for part in strategies if part.has_state]
    states = {part.kind: _on_cpu(part.function.state_dict()) for part in stateful}  # type: ignore[attr-defined]
    if states and len({*gather_object([_digest(states)])}) > 1:
        raise Refusal(
            f"The state of {' and '.join(states)} differs between processes, so no checkpoint can restore it. Compute "
            "it from what all processes see, as an advantage estimator does.",
            code="strategy-state",
        )
    return states


def _on_cpu(state: Any) -> Any:
    """``state`` with its tensors on the CPU, so that ranks compare equal whatever their devices."""
    if isinstance(state, torch.Tensor):
        return state.detach().cpu()
    if isinstance(state, dict):
        return {key: _on_cpu(value) for key, value in state.items()}
    return [_on_cpu(value) for value in state] if isinstance(state, list) else state


def _digest(states: dict[str, Any]) -> str:
    buffer = io.BytesIO()
    torch.save(states, buffer)
    return hashlib.sha256(buffer.getvalue()).hexdigest()
