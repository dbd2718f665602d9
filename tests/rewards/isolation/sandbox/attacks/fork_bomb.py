"""As many processes as there is room for."""

for _ in range(30):
    try:
        pid = os.fork()
    except OSError:
        continue
    if pid == 0:
        os._exit(0)
    hit(pid)
