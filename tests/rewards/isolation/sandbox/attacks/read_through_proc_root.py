"""Go round by the process's own root."""

attempt(lambda: open("/proc/self/root" + SECRET).read())
