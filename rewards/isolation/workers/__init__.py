"""Worker processes for scoring code that may hang, use up memory or crash: limits are enforced by the kernel."""

from evenkeel.rewards.isolation.workers.pool import WorkerPool, WorkerResult
from evenkeel.rewards.isolation.workers.worker_process import WorkerStartError

__all__ = ["WorkerPool", "WorkerResult", "WorkerStartError"]
