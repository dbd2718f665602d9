"""One rollout batch, and the queue of those generated some batches before they are trained: docs/lag.md."""

import contextvars
import io
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Sampler
from trl.trainer.utils import RepeatSampler

from evenkeel.trainer.algorithms.contract import UpdateSchedule
from evenkeel.trainer.step.setup import Batch, Position, Ranks, Row, Setup, temporarily

AGREEMENT = "vllm/agreement_max"
"""The metric of `provenance.EngineCheck`, of which the largest is logged."""


@dataclass
class Rollout:
    """This rank's part of a rollout batch, from its generation until it is cut into micro-batches.

    Attributes:
        rows: of the data (B,).
        batch: TRL's tensors of them.
        position: where in the run it was generated.
        rewards_per_function: (N, F) of all ranks.
        columns: what this rank's reward functions logged, name → one value a row.
        scores: results of `score`, where TRL's batch lacks one that was asked for.
    """

    rows: list[Row]
    batch: Batch
    position: Position
    rewards_per_function: Tensor
    columns: dict[str, list[Any]]
    score: Callable[[Batch], dict[str, Tensor]]
    """A pass of the current policy over a batch's completions: ``old_per_token_logps``, ``old_entropies``, and
    ``old_sum_pi_squared`` where a strategy names it."""
    scores: dict[str, Tensor] = field(default_factory=dict)

    @property
    def mask(self) -> Tensor:
        """Tokens that the loss counts, (B, T)."""
        return loss_mask(self.batch)

    def old_score(self, name: str) -> Tensor:
        """The entry (B, T) of TRL's batch, or of one more pass (`score`) where that has none."""
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


def kept_tokens(schedule: UpdateSchedule, batch: Mapping[str, Any], pass_index: int) -> Tensor:
    """Tokens of a micro-batch that a pass trains, (B, T) bool."""
    return schedule.kept(batch["old_per_token_logps"].exp(), loss_mask(batch), pass_index, batch["row_keys"])


def verdicts(columns: Mapping[str, list[Any]], *, noisy: bool = False) -> Tensor | None:
    """The column ``correct`` as 1, 0, NaN; ``None`` if there is none or it holds anything but verdicts.

    ``noisy``: read ``noisy_correct``, which training sees, where a reward has noise.
    """
    values = columns.get("noisy_correct" if noisy and "noisy_correct" in columns else "correct", [])
    usable = (value is None or (isinstance(value, float | int) and value in (0, 1)) for value in values)
    if not values or not all(usable):
        return None
    return torch.tensor([torch.nan if value is None else float(value) for value in values])


Metrics = dict[str, list[float]]


@dataclass(frozen=True)
class RolloutBatch:
    """One rank's part of a rollout batch with its advantages.

    Attributes:
        batch: TRL's entries, which are cut into micro-batches.
        shared_prefixes: (N,) tokens of the prefix that the group of each row of all ranks shares.
        step: optimizer steps made by the policy that generated it.
        number: of the rollout batch in the run.
        at: number of the batch in training when this one was generated.
        metrics: TRL's metrics of the batch, logged with the step that trains it.
    """

    batch: Batch
    shared_prefixes: Tensor
    step: int
    number: int = 0
    at: int = 0
    metrics: Metrics | None = None


@dataclass(frozen=True)
class PendingRollout:
    """A rollout batch that vLLM's server is generating; ``state``: attributes of transformers' state at the request.
    The other fields are as in `RolloutBatch`."""

    rows: list[Row]
    request: "Request"
    state: Mapping[str, Any]
    number: int
    at: int
    metrics: Metrics


class EpochSampler(Sampler[int]):
    """TRL's `RepeatSampler`, with the order of the e-th epoch fixed by e, also after a resume.

    Args:
        epoch_of_training: the trainer's epoch; after a resume on several processes no dataloader sets it.
    """

    def __init__(self, sampler: RepeatSampler, epoch_of_training: Callable[[], int] = lambda: 0) -> None:
        self.sampler = sampler
        self.epoch_of_training = epoch_of_training
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Called by accelerate's dataloader before each epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        if self.sampler.shuffle:
            self.sampler.generator.manual_seed(self.sampler.seed)
            for _ in range(max(self.epoch, self.epoch_of_training())):
                torch.randperm(self.sampler.num_samples, generator=self.sampler.generator)
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


class RunOrder:
    """The rows of each rollout batch of the run, by its number, as TRL's dataloader returns them.

    Args:
        data: the training rows by position.
        sampler: one that nothing else uses: it is changed.

    Attributes:
        per_epoch: rollout batches of an epoch; left over rows are dropped.
    """

    def __init__(self, data: Any, sampler: RepeatSampler, ranks: Ranks) -> None:
        self.data, self.sampler, self.ranks = data, sampler, ranks
        sampler.repeat_count = 1  # one for each micro-batch of a rollout batch
        self.per_epoch: int = sampler.num_samples // sampler.batch_size

    def rows(self, number: int) -> list[Row]:
        """This rank's rows of rollout batch ``number``."""
        epoch, place = divmod(number, self.per_epoch)
        size = self.sampler.batch_size * self.sampler.mini_repeat_count
        everyone = islice(EpochSampler(self.sampler, lambda: epoch), place * size, (place + 1) * size)
        return [dict(self.data[row]) for row in self.ranks.own_share(list(everyone))]


class Lag:
    """The queue of rollout batches that are generated and not yet trained.

    Attributes:
        staleness: k; 0 = nothing is generated ahead.
        order: the run's rows by rollout batch; set before training where k > 0.
        ahead: number of the batch that is being generated, less that of the one in training.
        pending: the batch that is generated while others are trained, where generation ``overlaps``.
    """

    order: RunOrder
    pending: PendingRollout | None

    def __init__(self, setup: Setup) -> None:
        self.staleness, self.overlaps = setup.settings.speed.staleness, setup.choices["overlap_generation"]
        self.schedule, self.ranks = setup.schedule, setup.ranks
        self.clear()

    def clear(self) -> None:
        """Empty the queue, which a training that ended in an exception may have left filled."""
        self.ahead, self.pending = 0, None
        self._queue: dict[int, RolloutBatch] = {}

    def holds(self, position: Position) -> bool:
        """Whether the batch that is trained next is in the queue."""
        return position.rollout in self._queue

    def due(self, position: Position) -> list[int]:
        """Numbers of the batches to generate before the next one is trained, of those that the run will train."""
        last = position.rollout
        if self.staleness:
            end = self.schedule.rollouts_begun(position.max_steps, self.order.per_epoch)
            last = max(last, min(last + self.staleness, end - 1))
        return [number for number in range(position.rollout, last + 1) if number not in self._queue]

    @contextmanager
    def generating(
        self, number: int, position: Position, metrics: MutableMapping[str, Metrics], own: Metrics | None = None
    ) -> Iterator[Metrics]:
        """Inside, batch ``number`` is generated: `ahead` is set, and TRL's training metrics are the batch's own."""
        line, metrics["train"] = metrics["train"], defaultdict(list) if own is None else own
        self.ahead = number - position.rollout
        try:
            yield metrics["train"]
        finally:
            self.ahead, metrics["train"] = 0, line

    def put(self, written: RolloutBatch, number: int, at: int, metrics: Metrics) -> None:
        """Add batch ``number``, generated while batch ``at`` was next to be trained."""
        kept = {name: [*each] for name, each in metrics.items()}
        self._queue[number] = replace(written, number=number, at=at, metrics=kept)

    def take(self, position: Position, line: Metrics) -> RolloutBatch:
        """Remove and return the batch that is trained next; its metrics are added to ``line``, TRL's."""
        found = self._queue.pop(position.rollout)
        for name, values in (found.metrics or {}).items():
            together = [*line[name], *values]
            line[name] = values if name == "num_tokens" else [max(together)] if name == AGREEMENT else together
        line["lag/rollout_batches"].append(float(found.number - found.at))
        return found

    @property
    def first_unwritten(self) -> int:
        """Number of the batch after the last one in the queue; 0 = it is empty."""
        return max(self._queue, default=-1) + 1

    def packed(self) -> bytes:
        """This rank's queue as bytes, for a checkpoint; no bytes where it is empty."""
        if not self._queue:
            return b""
        buffer = io.BytesIO()
        torch.save([dict(vars(one)) for one in self._queue.values()], buffer)
        return buffer.getvalue()

    def unpack(self, content: bytes) -> None:
        """Restore the queue from what `packed` returned."""
        kept = torch.load(io.BytesIO(content), map_location=self.ranks.device, weights_only=True) if content else []
        self._queue = {one["number"]: RolloutBatch(**one) for one in kept}


class Request:
    """One request for completions; a thread waits for vLLM's server.

    Collectives stay in the main thread: inside `sending` TRL's code runs to its end on placeholder completions of one
    token, inside `answering` again on the server's. No weights may be synced in between.

    Args:
        client: TRL's, on the process that has it; ``None`` on the others.
    """

    def __init__(self, client: Any) -> None:
        self.client, self._answer = client, Future[Any]()

    def sending(self) -> AbstractContextManager[None]:
        """Inside, the client's ``generate`` starts the request in a thread and returns placeholders."""
        return self._in_place_of_generate(lambda ask: partial(self._send, ask))

    def answering(self) -> AbstractContextManager[None]:
        """Inside, the client's ``generate`` waits for the server's answer, or raises the request's exception."""
        return self._in_place_of_generate(lambda _: lambda **_: self._answer.result())

    def _in_place_of_generate(self, made: Callable[[Any], Any]) -> AbstractContextManager[None]:
        return (
            nullcontext() if self.client is None else temporarily(self.client, {"generate": made(self.client.generate)})
        )

    def _send(self, ask: Callable[..., Any], *, prompts: list[list[int]], n: int, **keywords: Any) -> dict[str, Any]:
        def wait() -> None:
            try:
                self._answer.set_result(ask(prompts=prompts, n=n, **keywords))
            except BaseException as error:  # noqa: BLE001 raised where the answer is taken
                self._answer.set_exception(error)

        # a daemon thread, since the interpreter waits for all others when it exits
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(wait,), name="generation", daemon=True).start()
        rows = len(prompts) * n
        return {"prompt_ids": prompts, "completion_ids": [[0]] * rows, "logprobs": [[[0.0]]] * rows}
