"""Worker processes for judges that may hang, swell or crash on what a policy writes: limits that the kernel keeps."""

from rewards.isolation.workers.outcome import Outcome, Status
from rewards.isolation.workers.pool import WorkerPool
from rewards.isolation.workers.process import WorkerStartError

__all__ = ["Outcome", "Status", "WorkerPool", "WorkerStartError"]
