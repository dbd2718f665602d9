"""The evaluation at the last step, the files of every evaluation, and the best checkpoint."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from evenkeel.trainer.evaluation.result import EvaluationResult


class FinalEvaluation(TrainerCallback):
    """Evaluates at the last step, inside training: before and after it, DeepSpeed has no engine to generate with."""

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step >= state.max_steps:
            control.should_evaluate = True


class KeepBest(TrainerCallback):
    """Asks for a checkpoint when an evaluation of the trained policy is the best so far; transformers then keeps it."""

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
        best = -math.inf if state.best_metric is None else state.best_metric
        if state.global_step and metrics[args.metric_for_best_model] > best:
            control.should_save = True


class EvaluationFiles(TrainerCallback):
    """Writes each evaluation under ``folder`` (see `EvaluationResult.write`); ``newest``: the newest one's results."""

    def __init__(self, folder: Path, newest: Callable[[], Sequence[EvaluationResult]]) -> None:
        self.folder = folder
        self.newest = newest

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            for result in self.newest():
                result.write(self.folder)
