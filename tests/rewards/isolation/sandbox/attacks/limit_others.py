"""Starve the trainer: its limits, its processors, its priority."""

import resource

attempt(lambda: resource.prlimit(TRAINER, resource.RLIMIT_CPU), "read limits")
attempt(lambda: resource.prlimit(TRAINER, resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE)), "limits")
attempt(lambda: os.sched_setaffinity(TRAINER, os.sched_getaffinity(0)), "affinity")
attempt(lambda: os.setpriority(os.PRIO_PROCESS, TRAINER, os.getpriority(os.PRIO_PROCESS, 0)), "priority")
