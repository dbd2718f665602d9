"""Rollout batches that are written some batches before they are trained: `options.Speed.staleness`.

With staleness k, at the point where training takes up batch t, batch t + k is written by the policy as it is there, and
kept with everything that its training needs: π_old of the policy that wrote it, the reference, rewards, advantages,
labels and metrics. So batch t was written k batches ago, except the first k + 1, which the initial policy writes. It is
trained at the same place and on the same prompts as without staleness.
"""

import contextvars
import io
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from evenkeel.trainer.step.engine_check import METRIC as AGREEMENT
from evenkeel.trainer.step.prompts import RunOrder
from evenkeel.trainer.step.ranks import Ranks
from evenkeel.trainer.step.rollout import Batch, Position, Row, Schedule
from evenkeel.trainer.step.temporarily import temporarily

Metrics = dict[str, list[float]]


@dataclass(frozen=True)
class RolloutBatch:
    """One rank's part of a rollout batch with its advantages.

    Attributes:
        batch: what is cut into micro-batches.
        shared_prefixes: (N,) how many tokens the group of each row of all ranks begins with alike.
        step: optimizer steps that the policy which wrote it had made.
        number: of the rollout batch in the run.
        at: number of the batch that training had reached when this one was written.
        metrics: TRL's of the batch, which are logged with the step that trains it.
    """

    batch: Batch
    shared_prefixes: Tensor
    step: int
    number: int = 0
    at: int = 0
    metrics: Metrics | None = None


@dataclass(frozen=True)
class PendingRollout:
    """A rollout batch whose completions vLLM's server is still writing.

    Attributes:
        request: for the completions of ``rows``.
        state: transformers' state of training when it was made.
        number, at, metrics: as those of `RolloutBatch`.
    """

    rows: list[Row]
    request: "Request"
    state: Mapping[str, Any]
    number: int
    at: int
    metrics: Metrics


class Lag:
    """The queue of rollout batches that are written and not yet trained.

    Args:
        staleness: k; 0 = nothing is written ahead.
        overlaps: the newest batch is generated while older ones are trained, and finished when it is needed: at the
            next point where one is taken, or before an evaluation or a checkpoint.

    Attributes:
        order: the run's rows by rollout batch; set before training where k > 0.
        ahead: how many batches after the one in training the batch that is being written comes.
        pending: the batch that is generated while others are trained.
    """

    order: RunOrder

    def __init__(self, staleness: int, schedule: Schedule, ranks: Ranks, *, overlaps: bool = False) -> None:
        self.staleness, self.schedule, self.ranks, self.overlaps = staleness, schedule, ranks, overlaps
        self.clear()

    def clear(self) -> None:
        """Forget what a training that ended in an exception has written."""
        self.ahead, self.pending = 0, None
        self._queue: dict[int, RolloutBatch] = {}

    pending: PendingRollout | None

    def holds(self, position: Position) -> bool:
        """Whether the batch that is trained next is in the queue."""
        return position.rollout in self._queue

    def due(self, position: Position) -> list[int]:
        """Numbers of the batches to be written before the next one is trained; none which the run does not train."""
        last = position.rollout
        if self.staleness:
            end = self.schedule.rollouts_begun(position.max_steps, self.order.per_epoch)
            last = max(last, min(last + self.staleness, end - 1))
        return [number for number in range(position.rollout, last + 1) if number not in self._queue]

    @contextmanager
    def writing(
        self, number: int, position: Position, metrics: MutableMapping[str, Metrics], own: Metrics | None = None
    ) -> Iterator[Metrics]:
        """Inside, the batch of that number is written, and TRL's metrics of training are its own."""
        line, metrics["train"] = metrics["train"], defaultdict(list) if own is None else own
        self.ahead = number - position.rollout
        try:
            yield metrics["train"]
        finally:
            self.ahead, metrics["train"] = 0, line

    def put(self, written: RolloutBatch, number: int, at: int, metrics: Metrics) -> None:
        """Add the batch of that number, written when training had reached batch ``at``."""
        kept = {name: [*each] for name, each in metrics.items()}
        self._queue[number] = replace(written, number=number, at=at, metrics=kept)

    def take(self, position: Position, line: Metrics) -> RolloutBatch:
        """The batch that is trained next; its metrics go into ``line``, TRL's."""
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
        """This rank's queue for a checkpoint; empty where nothing was written ahead."""
        if not self._queue:
            return b""
        buffer = io.BytesIO()
        torch.save([dict(vars(one)) for one in self._queue.values()], buffer)
        return buffer.getvalue()

    def unpack(self, content: bytes) -> None:
        """Go on from what `packed` gave."""
        kept = torch.load(io.BytesIO(content), map_location=self.ranks.device, weights_only=True) if content else []
        self._queue = {one["number"]: RolloutBatch(**one) for one in kept}


class Request:
    """One request for completions, which waits for vLLM's server in a thread.

    TRL's calls stay whole, with their gathering of prompts and broadcast of completions, so that every collective is
    made by the main thread: inside `sending` they run to their end on completions of one token that nobody reads,
    inside `answering` once more on the server's. The weights must not be sent in between.

    Args:
        client: TRL's, on the process that has it; ``None`` on the others.
    """

    def __init__(self, client: Any) -> None:
        self.client, self._answer = client, Future[Any]()

    def sending(self) -> AbstractContextManager[None]:
        """Inside, what the client is asked for is asked in a thread."""
        return self._in_place_of_generate(lambda ask: partial(self._send, ask))

    def answering(self) -> AbstractContextManager[None]:
        """Inside, the client answers what the server did, or raises what asking it did."""
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

        # a daemon, for the interpreter's end waits for all other threads
        threading.Thread(target=contextvars.copy_context().run, args=(wait,), name="generation", daemon=True).start()
        rows = len(prompts) * n
        return {"prompt_ids": prompts, "completion_ids": [[0]] * rows, "logprobs": [[[0.0]]] * rows}
