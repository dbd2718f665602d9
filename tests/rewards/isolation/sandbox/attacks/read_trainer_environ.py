"""Secrets of the trainer through the process file system."""

attempt(lambda: open(f"/proc/{TRAINER}/environ", "rb").read(16))
