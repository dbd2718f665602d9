"""Rollout batches that are written some batches before they are trained: `options.Speed.staleness`.

With staleness k, at the point where training takes up batch t, batch t + k is written by the policy as it is there, and
kept with everything that its training needs: π_old of the policy that wrote it, the reference, rewards, advantages,
labels and metrics. So batch t was written k batches ago, except the first k + 1, which the initial policy writes. It is
trained at the same place and on the same prompts as without staleness.
"""

import io
from collections import defaultdict
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from evenkeel.trainer.step.engine_check import METRIC as AGREEMENT
from evenkeel.trainer.step.prompts import RunOrder
from evenkeel.trainer.step.ranks import Ranks
from evenkeel.trainer.step.rollout import Batch, Position, Row, Schedule

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


Write = Callable[[list[Row]], Written]


class Lag:
    """The queue of rollout batches that are written and not yet trained.

    Args:
        staleness: k; 0 = nothing is written ahead.

    Attributes:
        order: the run's rows by rollout batch; set before training where k > 0.
        ahead: how many batches after the one in training the batch that is being written comes.
    """

    order: RunOrder

    def __init__(self, staleness: int, schedule: Schedule, ranks: Ranks) -> None:
        self.staleness, self.schedule, self.ranks = staleness, schedule, ranks
        self.ahead = 0
        self._queue: dict[int, Written] = {}

    def next(
        self, given: list[Row], position: Position, write: Write, metrics: MutableMapping[str, Metrics]
    ) -> Written:
        """The batch that is trained next; before that those are written which are due.

        Args:
            given: its rows.
            write: makes a rollout batch of rows.
            metrics: TRL's, of which ``train`` gets those of the batch that is trained.
        """
        now = position.rollout
        if self.staleness == 0 and now not in self._queue:
            return write(given)
        for number in range(now, self._last(position) + 1):
            if number not in self._queue:
                self._queue[number] = self._written(number, position, write, metrics)
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

    def _written(self, number: int, position: Position, write: Write, metrics: MutableMapping[str, Metrics]) -> Written:
        line, metrics["train"] = metrics["train"], defaultdict(list)
        self.ahead = number - position.rollout
        try:
            written = write(self.order.rows(number))
            return replace(written, number=number, at=position.rollout, metrics=dict(metrics["train"]))
        finally:
            self.ahead, metrics["train"] = 0, line

    @property
    def first_unwritten(self) -> int:
        """Number of the batch after the last one in the queue; 0 = it is empty."""
        return max(self._queue, default=-1) + 1

    def clear(self) -> None:
        """Forget what a training that ended in an exception has written."""
        self._queue, self.ahead = {}, 0

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
