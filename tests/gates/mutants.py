"""Trainers that are wrong on purpose, each in one small way: the equality gate has to tell every one from stock."""

from typing import Any

import torch
from trl import GRPOTrainer


class Faithful(GRPOTrainer):
    """Right: overrides hooks, and logs a number of its own."""

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return super()._compute_loss(model, inputs) * 1.0

    def log(self, logs: dict[str, float], *positional: Any, **keywords: Any) -> None:
        super().log({**logs, "of_its_own": 1.0}, *positional, **keywords)


class LossOffByAMillionth(GRPOTrainer):
    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return super()._compute_loss(model, inputs) * (1 + 1e-6)


class WrongInOneStep(GRPOTrainer):
    """Only the gradient of the last step is off, which no log shows."""

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return super()._compute_loss(model, inputs) * (1 + 1e-6 * (self.state.global_step == 5))


class DrawsOnceMore(GRPOTrainer):
    """After the last rollout: no weight differs."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        batch = super()._generate_and_score_completions(inputs)
        if self.state.global_step == 5:
            torch.rand(1)
        return batch


class ForgetsTheReference(GRPOTrainer):
    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return super()._compute_loss(model, {**inputs, "ref_per_token_logps": inputs["ref_per_token_logps"] * 0})


class ForgetsTheOldPolicy(GRPOTrainer):
    """Wrong off-policy alone."""

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return super()._compute_loss(model, {k: v for k, v in inputs.items() if k != "old_per_token_logps"})


class ForgetsALog(GRPOTrainer):
    def log(self, logs: dict[str, float], *positional: Any, **keywords: Any) -> None:
        super().log({k: v for k, v in logs.items() if k != "grad_norm"}, *positional, **keywords)


class ForgetsToEvaluate(GRPOTrainer):
    def evaluate(self, *positional: Any, **keywords: Any) -> dict[str, float]:
        return {}


class ForgetsTheOptimizer(GRPOTrainer):
    """Wrong after a stop alone."""

    def _load_optimizer_and_scheduler(self, checkpoint: Any) -> None:
        pass


class TakesNoAdapter(GRPOTrainer):
    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__(*positional, **{k: v for k, v in keywords.items() if k != "peft_config"})


_PLAIN = "dapo, 1 iterations, 1 micro-batches, beta 0.0"
CAUGHT_UNDER = {
    LossOffByAMillionth: _PLAIN,
    WrongInOneStep: _PLAIN,
    DrawsOnceMore: _PLAIN,
    ForgetsALog: _PLAIN,
    ForgetsTheReference: "dapo, 1 iterations, 1 micro-batches, beta 0.04",
    ForgetsTheOldPolicy: "dapo, 2 iterations, 1 micro-batches, beta 0.0",
    ForgetsToEvaluate: "evaluation between steps",
    ForgetsTheOptimizer: "stopped and resumed",
    TakesNoAdapter: "adapter",
}
"""Wrong class → a setting under which it must differ."""
