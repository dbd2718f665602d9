"""Other users, groups, capabilities."""

# unconfined: skip, an unprivileged user may not either
attempt(lambda: os.setuid(12345))
attempt(lambda: os.setgid(12345))
attempt(lambda: os.setgroups([1]))
