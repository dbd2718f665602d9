"""Become another program, without the filter's memory."""

attempt(lambda: os.execv("/bin/echo", ["echo", "HIT", "exec"]))
