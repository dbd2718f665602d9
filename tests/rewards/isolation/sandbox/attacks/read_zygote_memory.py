"""The process that forks the programs."""

attempt(lambda: open(f"/proc/{os.getppid()}/mem", "rb"))
attempt(lambda: open(f"/proc/{os.getppid()}/environ", "rb").read())
