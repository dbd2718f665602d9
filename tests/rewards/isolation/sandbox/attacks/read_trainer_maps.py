"""Secrets of the trainer through the process file system."""

attempt(lambda: open(f"/proc/{TRAINER}/maps", "rb").read(16))
