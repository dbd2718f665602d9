"""What happens beside the steps of a run: transformers' callbacks."""

from trainer.run.callbacks.checkpoints import CheckpointManifest
from trainer.run.callbacks.evaluations import EvaluationFiles, FinalEvaluation, KeepBest
from trainer.run.callbacks.idle_batches import IdleBatches
from trainer.run.callbacks.progress import Doctor, EvaluationProgress, Progress, Samples
from trainer.run.callbacks.records import MetricsFile, Rollouts, WandbRunConfig
from trainer.run.callbacks.stalls import StallWatchdog, stall_watchdogs
from trainer.run.callbacks.stopping import StopAtRolloutBoundary

__all__ = [
    "CheckpointManifest",
    "Doctor",
    "EvaluationFiles",
    "EvaluationProgress",
    "FinalEvaluation",
    "IdleBatches",
    "KeepBest",
    "MetricsFile",
    "Progress",
    "Rollouts",
    "Samples",
    "StallWatchdog",
    "StopAtRolloutBoundary",
    "WandbRunConfig",
    "stall_watchdogs",
]
