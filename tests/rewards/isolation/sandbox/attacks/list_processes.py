"""See who else is there."""

attempt(lambda: os.listdir("/proc"))
attempt(lambda: open(f"/proc/{TRAINER}/cmdline").read())
attempt(lambda: os.readlink(f"/proc/{TRAINER}/cwd"))
