"""Worker processes for judges that may hang, swell or crash on what a policy writes: limits that the kernel keeps."""

from rewards.isolation.workers.pool import WorkerPool
from rewards.isolation.workers.process import WorkerStartError
from rewards.isolation.workers.result import WorkerResult, WorkerStatus

__all__ = ["WorkerPool", "WorkerResult", "WorkerStartError", "WorkerStatus"]
