"""Evaluation inside TRL's trainer: its generation, processes, DeepSpeed and vLLM, with scores and metrics of ours.

TRL's own evaluation counts rows that fill the last batch twice, averages over batches, and computes a loss. Here each
held-out row is answered, scored and kept.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from accelerate.utils import gather_object
from torch.utils.data import DataLoader
from transformers import set_seed

from evenkeel.trainer.evaluation.decoding import Decoding, Draw, draws_of_rank
from evenkeel.trainer.evaluation.judging import Answered, Tally
from evenkeel.trainer.evaluation.result import EvaluationResult, evaluation_metrics
from evenkeel.trainer.step.options import Evaluation
from evenkeel.trainer.step.setup import Setup, random_streams_kept, temporarily


class HeldOut:
    """Answers and scores held-out rows, k samples or the greedy completion of each, in named sets.

    Attributes:
        newest: the results of the newest evaluation, one for each set.
        environments: environments of held-out rows, by name, kept for the next evaluation.
        under_way: rows and tally of the loop whose batches `answer` takes; ``None`` = none is running.
    """

    def __init__(self, setup: Setup, options: Evaluation, functions: Mapping[str, Any]) -> None:
        self.options, self.ranks, self.functions = options, setup.ranks, functions
        self.reward_weights, self.ends = setup.reward_weights.tolist(), setup.ends
        self.temperature, self.batch_size = setup.args.temperature, setup.args.per_device_eval_batch_size
        self.newest: list[EvaluationResult] = []
        self.environments: dict[str | None, list[Any]] = defaultdict(list)
        self.under_way: tuple[Any, Decoding, Tally] | None = None

    def evaluate(
        self, datasets: Any, step: int, run_loop: Callable[[DataLoader[Any], Decoding], None]
    ) -> dict[str, float]:
        """Metrics of every set (a single one is called ``test``) and of all together; NaN where nothing was scored.

        Args:
            run_loop: transformers' evaluation loop over batches of draws, which calls `answer` for each.

        Raises:
            ValueError: a set has no rows.
        """
        named = datasets if isinstance(datasets, dict) else {"test": datasets}
        if empty := [name for name, rows in named.items() if not rows]:
            raise ValueError(f"The held-out set {empty[0]!r} has no rows. Give eval_dataset some.")
        tallies = {name: self._tally(rows, run_loop) for name, rows in named.items()}
        drawn = [decoding.at(self.temperature) for decoding in self.options.decodings]
        self.newest = [
            EvaluationResult(name, step, drawn, gather_object(tally.records), tally.seconds)
            for name, tally in tallies.items()
        ]
        logged = gather_object([dict(tally.logged) for tally in tallies.values()])
        return evaluation_metrics(self.newest, logged)

    def answer(self, draws: Sequence[Draw], generate: Callable[[list[Any]], Answered], state: Any) -> None:
        """Generate and score the completions of one batch of the loop; ``state``: for reward functions."""
        assert self.under_way is not None
        rows, decoding, tally = self.under_way
        asked = [rows[draw.item] for draw in draws]
        started = time.perf_counter()
        answered = generate(asked)
        tally.seconds += time.perf_counter() - started
        functions = self.functions, self.reward_weights
        tally.judge(draws, asked, answered, self.ends, *functions, greedy=decoding.greedy, trainer_state=state)

    def _tally(self, rows: Any, run_loop: Callable[[DataLoader[Any], Decoding], None]) -> Tally:
        """This rank's share of the completions of ``rows``, scored."""
        tally = Tally()
        for decoding in self.options.decodings:
            tally.logs_metrics = decoding is self.options.decodings[0]
            rank = self.ranks.index, self.ranks.count
            batches: Any = draws_of_rank(len(rows), decoding.samples, self.batch_size, *rank)
            with temporarily(self, {"under_way": (rows, decoding, tally)}), self.own_randomness():
                run_loop(DataLoader(batches, batch_size=None), decoding)
        return tally

    @contextmanager
    def own_randomness(self) -> Iterator[None]:
        """Inside, random streams start from the evaluation's seed, if it has one; training's are restored on exit."""
        if self.options.seed is None:
            yield
            return
        with random_streams_kept(self.ranks.device):
            set_seed((self.options.seed + self.ranks.index) % 2**32)
            yield
