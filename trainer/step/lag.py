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
from collections.abc import Callable, Iterator, MutableMapping
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
class Written:
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


Begin = Callable[[list[Row]], Callable[[], Written]]
"""Begins to write a rollout batch of rows: what it returns waits for the completions and does the rest."""


@dataclass(frozen=True)
class UnderWay:
    """A rollout batch that was begun and is not finished; its fields as those of `Written`."""

    finish: Callable[[], Written]
    number: int
    at: int
    metrics: defaultdict[str, list[float]]


class Lag:
    """The queue of rollout batches that are written and not yet trained.

    Args:
        staleness: k; 0 = nothing is written ahead.
        overlaps: the newest batch is finished when it is needed: at the next point, or before an evaluation or a
            checkpoint (`finish`). So batch t + k is generated while batch t is trained.

    Attributes:
        order: the run's rows by rollout batch; set before training where k > 0.
        ahead: how many batches after the one in training the batch that is being written comes.
    """

    order: RunOrder

    def __init__(self, staleness: int, schedule: Schedule, ranks: Ranks, *, overlaps: bool = False) -> None:
        self.staleness, self.schedule, self.ranks, self.overlaps = staleness, schedule, ranks, overlaps
        self.ahead = 0
        self._queue: dict[int, Written] = {}
        self._under_way: UnderWay | None = None

    def next(
        self, given: list[Row], position: Position, begin: Begin, metrics: MutableMapping[str, Metrics]
    ) -> Written:
        """The batch that is trained next; before that those are written which are due.

        Args:
            given: its rows.
            metrics: TRL's, of which ``train`` gets those of the batch that is trained.
        """
        now = position.rollout
        if self.staleness == 0 and now not in self._queue:
            return begin(given)()
        self.finish(position, metrics)
        for number in range(now, self._last(position) + 1):
            if number not in self._queue:
                self.finish(position, metrics)
                mine: defaultdict[str, list[float]] = defaultdict(list)
                with self._writing(number, position, mine, metrics):
                    self._under_way = UnderWay(begin(self.order.rows(number)), number, now, mine)
        if not self.overlaps or now not in self._queue:
            self.finish(position, metrics)
        found = self._queue.pop(now)
        line = metrics["train"]
        for name, values in (found.metrics or {}).items():
            together = [*line[name], *values]
            line[name] = values if name == "num_tokens" else [max(together)] if name == AGREEMENT else together
        line["lag/rollout_batches"].append(float(found.number - found.at))
        return found

    def _last(self, position: Position) -> int:
        """The last batch that is due: none is written which the run does not train."""
        if self.staleness == 0:
            return position.rollout
        end = self.schedule.rollouts_begun(position.max_steps, self.order.per_epoch)
        return max(position.rollout, min(position.rollout + self.staleness, end - 1))

    def finish(self, position: Position, metrics: MutableMapping[str, Metrics]) -> None:
        """Wait for the batch that is being written, if there is one, and put it into the queue."""
        if (begun := self._under_way) is None:
            return
        self._under_way = None
        with self._writing(begun.number, position, begun.metrics, metrics):
            written = begun.finish()
        self._queue[begun.number] = replace(
            written, number=begun.number, at=begun.at, metrics={name: [*each] for name, each in begun.metrics.items()}
        )

    @contextmanager
    def _writing(
        self, number: int, position: Position, mine: Metrics, metrics: MutableMapping[str, Metrics]
    ) -> Iterator[None]:
        """Inside, TRL's metrics of training are the batch's own."""
        line, metrics["train"] = metrics["train"], mine
        self.ahead = number - position.rollout
        try:
            yield
        finally:
            self.ahead, metrics["train"] = 0, line

    @property
    def is_writing(self) -> bool:
        """Whether a batch was begun and is not finished."""
        return self._under_way is not None

    @property
    def first_unwritten(self) -> int:
        """Number of the batch after the last one in the queue; 0 = it is empty."""
        return max(self._queue, default=-1) + 1

    def clear(self) -> None:
        """Forget what a training that ended in an exception has written."""
        self._queue, self._under_way, self.ahead = {}, None, 0

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
        self._queue = {one["number"]: Written(**one) for one in kept}


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
