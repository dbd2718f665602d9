"""Evaluation inside TRL's trainer: its generation, its processes, its DeepSpeed and vLLM; our judgement and numbers.

TRL's own evaluation repeats rows to fill the last batch and counts them twice, averages over batches instead of rows,
and computes a loss, for which it needs the reference model and log-probabilities of what it generates. None of it is
wanted here: a held-out row is answered, judged and kept.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from accelerate.utils import gather_object
from torch.utils.data import DataLoader
from transformers import GenerationConfig

from trainer.evaluation.decoding import Decoding, Draw, draws_of_rank
from trainer.evaluation.judging import Tally
from trainer.evaluation.result import EvaluationResult, evaluation_metrics
from trainer.step.compatibility import PreflightError
from trainer.step.early_judging import EarlyJudgingTrainer, is_plain
from trainer.step.set_aside import holding


class EvaluatingTrainer(EarlyJudgingTrainer):
    """`EarlyJudgingTrainer` that can evaluate k samples or the greedy completion of any number of rows in named sets.

    Args:
        evaluation_seed: where given, every `evaluate` samples from this seed and leaves the training run's random
            stream as it found it, so that how often one evaluates does not change what is trained.
        decodings: how `evaluate` draws completions of each held-out row. Where given, ``eval_dataset`` is a dataset or
            a mapping name → dataset (one alone is called ``test``); `evaluate` logs ``eval_<name>/…`` (see
            `EvaluationResult.metrics`) and, over the rows of all sets, ``eval_reward`` and what the reward functions
            log of the first decoding, and leaves `newest_evaluations`. Without, `evaluate` is TRL's.

    Raises:
        PreflightError: decodings with a reward function that is a model or asynchronous.
    """

    generation_kwargs: dict[str, Any]
    control: Any

    def __init__(
        self, *positional: Any, evaluation_seed: int | None = None, decodings: Sequence[Decoding] = (), **keywords: Any
    ) -> None:
        self.evaluation_seed = evaluation_seed
        self.decodings = decodings
        self.newest_evaluations: list[EvaluationResult] = []
        self._evaluated: tuple[Any, Decoding, Tally] | None = None
        super().__init__(*positional, **keywords)
        if decodings and not all(map(is_plain, self.reward_funcs)):
            raise PreflightError(
                f"decodings are given, and one of the reward functions {', '.join(self.reward_func_names)} is a model "
                "or asynchronous; this evaluation calls plain functions. Leave decodings out, or wrap it in a function."
            )

    def newest_samples(self, number: int) -> list[dict[str, Any]]:
        """Up to ``number`` completions of the newest rollout batch, evenly spread, each as column → value."""
        columns = {"prompt": self._logs["prompt"], "completion": self._logs["completion"]}
        columns |= {**self._logs["rewards"], **self._logs["extra"], "advantage": self._logs["advantages"]}
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        for row in rows:
            for name in ("prompt", "completion"):
                row[name] = row[name] if isinstance(row[name], str) else row[name][-1]["content"]
        return rows[:: max(1, len(rows) // max(1, number))][:number]

    def evaluate(self, eval_dataset: Any = None, *positional: Any, **keywords: Any) -> dict[str, float]:
        """TRL's evaluation, or with ``decodings`` ours; what was not judged is NaN in its result and not logged."""
        if not self.decodings:
            with self._evaluation_randomness():
                return super().evaluate(eval_dataset, *positional, **keywords)
        datasets = self.eval_dataset if eval_dataset is None else eval_dataset
        named = datasets if isinstance(datasets, dict) else {"test": datasets}
        tallies = {name: self._tally(rows) for name, rows in named.items()}
        drawn = [decoding.at(self.temperature) for decoding in self.decodings]
        self.newest_evaluations = [
            EvaluationResult(name, self.state.global_step, drawn, gather_object(tally.records), tally.seconds)
            for name, tally in tallies.items()
        ]
        logged = gather_object([dict(tally.logged) for tally in tallies.values()])
        metrics = evaluation_metrics(self.newest_evaluations, logged)
        self._metrics["eval"].clear()  # TRL's own, in which padding counts
        self.log({name: value for name, value in metrics.items() if not math.isnan(value)})
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def prediction_step(self, model: Any, inputs: Any, *positional: Any, **keywords: Any) -> Any:
        if self._evaluated is None:
            return super().prediction_step(model, inputs, *positional, **keywords)
        self._answer(inputs, *self._evaluated)
        return None, None, None

    def _tally(self, rows: Any) -> Tally:
        """This rank's share of the completions of ``rows``, judged."""
        tally = Tally()
        for decoding in self.decodings:
            tally.logs_metrics = decoding is self.decodings[0]
            ranks = self.accelerator.process_index, self.accelerator.num_processes
            batches: Any = draws_of_rank(len(rows), decoding.samples, self.args.per_device_eval_batch_size, *ranks)
            self._evaluated = rows, decoding, tally
            try:
                with self._evaluation_randomness(), self._drawing(decoding):
                    # transformers' loop: it prepares the model where evaluation comes without training
                    self.evaluation_loop(DataLoader(batches, batch_size=None), "Evaluation", prediction_loss_only=True)
            finally:
                self._evaluated = None
        return tally

    def _answer(self, draws: Sequence[Draw], rows: Any, decoding: Decoding, tally: Tally) -> None:
        asked = [rows[draw.item] for draw in draws]
        started = time.perf_counter()
        _, token_ids, _, completions, *_ = self._generate([row["prompt"] for row in asked])
        tally.seconds += time.perf_counter() - started
        self.model.eval()  # transformers' continuous batching leaves it in training mode
        ends = {*self.eos_token_ids, self._tokenizer.pad_token_id}
        functions = dict(zip(self.reward_func_names, self.reward_funcs, strict=True))
        weights = self.reward_weights.tolist()
        tally.judge(draws, asked, completions, token_ids, ends, functions, weights, greedy=decoding.greedy)

    @contextmanager
    def _drawing(self, decoding: Decoding) -> Iterator[None]:
        """Generation as ``decoding`` says, in transformers or vLLM; afterwards as before."""
        wanted = decoding.generation_arguments
        engine: Any = self.vllm_generation if self.use_vllm else self
        changed: dict[str, Any] = {}
        if wanted and self.use_vllm:  # to which 0 says greedy
            changed = {"temperature": 0.0 if decoding.greedy else decoding.temperature}
        elif wanted:
            arguments = {**self.generation_kwargs, **wanted}
            config = GenerationConfig(**arguments, disable_compile=True)
            changed = {"generation_kwargs": arguments, "generation_config": config}
        with holding(engine, changed):
            yield

    @contextmanager
    def _evaluation_randomness(self) -> Iterator[None]:
        if self.evaluation_seed is None:
            yield
            return
        devices = [self.accelerator.device] if self.accelerator.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(self.evaluation_seed + self.accelerator.process_index)
            yield
