"""Read a file of the system."""

attempt(lambda: open("/etc/passwd").read())
