"""What happens beside the steps of a run: transformers' callbacks."""

from trainer.run.callbacks.checkpoints import CheckpointManifest
from trainer.run.callbacks.evaluations import EvaluationFiles, FinalEvaluation, KeepBest
from trainer.run.callbacks.idle_batches import IdleBatches
from trainer.run.callbacks.metrics_file import MetricsFile
from trainer.run.callbacks.progress import EvaluationProgress, Progress, Samples
from trainer.run.callbacks.rollouts import Rollouts
from trainer.run.callbacks.stalls import StallWatchdog, stall_watchdogs
from trainer.run.callbacks.stopping import StopAtBlockEdge
from trainer.run.callbacks.wandb_config import WandbRunConfig

__all__ = [
    "CheckpointManifest",
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
    "StopAtBlockEdge",
    "WandbRunConfig",
    "stall_watchdogs",
]
