"""Memory written to a file, or piped to a handler that the system has configured."""

# unconfined: skip, the limit holds at every level
# ends: killed_signal
import os
import resource

if resource.getrlimit(resource.RLIMIT_CORE)[0] != 1:
    hit(resource.getrlimit(resource.RLIMIT_CORE))
os.abort()
