"""Become another program, without the filter's memory."""

import os

attempt(lambda: os.execv("/bin/echo", ["echo", "HIT", "exec"]))
