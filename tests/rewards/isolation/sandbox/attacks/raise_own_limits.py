"""Undo the limits."""

# unconfined: skip, root may
import resource

for name in ("AS", "CPU", "FSIZE", "NOFILE", "CORE", "STACK", "MEMLOCK"):
    limit = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(limit)
    for values in ((soft + 1, hard + 1), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)):
        try:
            resource.setrlimit(limit, values)
        except (ValueError, OSError):
            continue
        hit(name)
