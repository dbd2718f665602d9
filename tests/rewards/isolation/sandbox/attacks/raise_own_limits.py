"""Undo the limits."""

# unconfined: skip, root may
import resource

# The stack is left out: its size is the program's own affair, within its memory.
for name in ("AS", "CPU", "FSIZE", "NOFILE", "CORE", "MEMLOCK"):
    limit = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(limit)
    for values in ((soft + 1, hard + 1), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)):
        try:
            resource.setrlimit(limit, values)
        except (ValueError, OSError):
            continue
        hit(name)
