"""Secrets of the trainer through the process file system."""

attempt(lambda: open(f"/proc/{TRAINER}/fd/0", "rb").read(16))
