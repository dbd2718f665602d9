"""The environment of process 1, which a namespace does not clear."""

# unconfined: skip, process 1 may be protected by itself
attempt(lambda: open("/proc/1/environ").read())
