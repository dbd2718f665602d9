"""Memory written to a file, or piped to a handler that the system has configured."""

# ends: killed_signal
import resource

if resource.getrlimit(resource.RLIMIT_CORE)[0] != 1:
    hit(resource.getrlimit(resource.RLIMIT_CORE))
os.abort()
