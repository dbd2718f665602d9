"""What happens beside the steps of a run: transformers' callbacks."""

from evenkeel.trainer.run.callbacks.checkpoints import CheckpointManifest
from evenkeel.trainer.run.callbacks.evaluations import EvaluationFiles, FinalEvaluation, KeepBest
from evenkeel.trainer.run.callbacks.idle_batches import IdleBatches
from evenkeel.trainer.run.callbacks.progress import Progress, Samples
from evenkeel.trainer.run.callbacks.records import MetricsFile, Rollouts, WandbRunConfig
from evenkeel.trainer.run.callbacks.stalls import StallWatchdog
from evenkeel.trainer.run.callbacks.stopping import StopAtRolloutBoundary

__all__ = [
    "CheckpointManifest",
    "EvaluationFiles",
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
]
