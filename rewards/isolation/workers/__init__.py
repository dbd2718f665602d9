"""Worker processes for judges that may hang, swell or crash on what a policy writes: limits that the kernel keeps."""

from evenkeel.rewards.isolation.workers.pool import WorkerPool, WorkerResult, WorkerStatus
from evenkeel.rewards.isolation.workers.worker_process import WorkerStartError

__all__ = ["WorkerPool", "WorkerResult", "WorkerStartError", "WorkerStatus"]
